// Small loops over frames [height,width,channels] in float32, for running a model frame by frame. Raw pointers only;
// checked by the caller.
#pragma once

#include <cstdint>

namespace convssm::ops {

// Rows [y0,y1) of the average over 2x2 pixels: x [2 height, 2 width, channels] -> out [height, width, channels].
struct PoolRows {
  int64_t y0, y1, width, channels;
  const float* x;
  float* out;
};
void pool2_rows(const PoolRows& rows);

// The means over the pixels of a frame, for channels [c0,c1).
struct MeanRange {
  int64_t pixels, channels, c0, c1;
  const float* x;
  double* sums;  // [channels], scratch
  float* means;  // [channels]
};
void channel_means(const MeanRange& range);

// x = x factor + offset, each channel by its own; nullptr = one and zero.
struct ScaleRows {
  int64_t rows, channels;
  const float* factor;
  const float* offset;
  float* x;
};
void scale_rows(const ScaleRows& rows);

void gate_loop(const float* x, const float* gate, float* out, int64_t size);  // out = x sigmoid(gate)
void tanh_loop(const float* x, float* out, int64_t size);                     // cut to [-1,1]

// A ConvGRU update, pixel by pixel: gates of 3P channels z, r, n from the input and, from the state, 2P z, r and P n.
struct GruRows {
  int64_t rows, states;
  const float* from_u;     // [rows, 3P]
  const float* zr_from_h;  // [rows, 2P]
  const float* n_from_h;   // [rows, P], for the update
  float* reset;            // [rows, P]: sigmoid(r) h, written by gru_reset_rows
  float* h;                // [rows, P]: (1 - sigmoid(z)) h + sigmoid(z) tanh(n), written by gru_update_rows
};
void gru_reset_rows(const GruRows& rows);
void gru_update_rows(const GruRows& rows);

}  // namespace convssm::ops
