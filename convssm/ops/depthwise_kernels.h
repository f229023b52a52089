// Depthwise convolution of a frame [height,width,channels] in float32. Raw pointers only; checked by the caller.
#pragma once

#include <cstdint>

namespace convssm::ops {

// Rows [y0,y1) of out = bias + x * weight with zeros around x; kernels of odd sides, which may be larger than the frame.
struct DepthwiseRows {
  int64_t y0, y1, height, width, channels;
  int64_t kernel_h, kernel_w;
  const float* x;       // [height, width, channels]
  const float* weight;  // [kernel_h, kernel_w, channels]
  const float* bias;    // [channels]; nullptr = zero
  float* out;           // [height, width, channels]
};
void depthwise_rows(const DepthwiseRows& rows);

}  // namespace convssm::ops
