// 3x3 convolutions by Winograd's F(4x4,3x3) in whole numbers, forward only: inputs of 8 bits (a step per channel), weights
// rounded after their transform (a scale per position and output channel). On AVX2 up to 1.5 products in the time
// of one float32 product, and half of the memory traffic of the packed weights.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/ops/huge_pages.h"
#include "convssm/ops/winograd.h"

namespace convssm::ops {

struct WinogradInt8Weights {
  int64_t in = 0, out = 0;
  HugePages<int16_t> weights;
  std::vector<float> scales, inverse_steps;
};

// Whether these channel counts are taken on this machine: as winograd_takes, up to 16,384 inputs.
bool winograd_int8_takes(int64_t in, int64_t out);

// limits [in]: the largest magnitude of each input channel, larger inputs are cut off.
WinogradInt8Weights winograd_int8_pack(const WinogradWeights& weights, int64_t in, int64_t out, const float* limits);

// y = activation(conv(x) + bias + add), x and y float32. `in` and `out` of the shape are those of the weights.
void winograd_int8_forward(const WinogradShape& shape, const float* x, const WinogradInt8Weights& packed,
                           const WinogradEpilogue& epilogue, float* y);

}  // namespace convssm::ops
