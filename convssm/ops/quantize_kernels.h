// Rows (pixels) of float32 to bytes, and the ranges that decide how. Raw pointers only; checked by the caller.
#pragma once

#include <cstdint>

namespace convssm::ops {

// out = round(x factor + offset) cut to [0,255], each channel by its own factor and offset.
struct QuantizeRows {
  int64_t rows, channels;
  const float* x;  // [rows, channels]
  const float* factor;
  const float* offset;
  uint8_t* out;
};

// low and high [channels] widened to hold the values of all rows.
struct RangeRows {
  int64_t rows, channels;
  const float* x;
  float* low;
  float* high;
};

void quantize_rows(const QuantizeRows& rows);
void widen_range(const RangeRows& rows);

}  // namespace convssm::ops
