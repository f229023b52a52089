// What every metric of frames checks first: two tensors of the same shape [...,C,H,W], float32 with all values in [0,1],
// or bytes.
// A metric never rescales or clamps by itself: a wrong range is an error that says which conversion is meant.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convssm::metrics {

struct FramePairs {
  at::Tensor truth, forecast;    // contiguous, on the CPU
  std::vector<int64_t> leading;  // the sizes before C,H,W: one value of a metric for each
  int64_t frames, channels, height, width;

  int64_t plane() const { return height * width; }
  int64_t frame() const { return channels * plane(); }
};

// Error(usage) for wrong shapes, types and ranges, Error(numeric) for NaN; `metric` is the name in the message.
FramePairs check_f01_frames(const char* metric, const at::Tensor& truth, const at::Tensor& forecast);

// Throws unless all values of x are in [0,1], Error(numeric) for NaN; `name` is the argument in the message.
void check_f01_range(const char* metric, const char* name, const at::Tensor& x);

// The same for uint8.
FramePairs check_u8_frames(const char* metric, const at::Tensor& truth, const at::Tensor& forecast);

}  // namespace convssm::metrics
