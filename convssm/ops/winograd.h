// 3x3 convolutions by Winograd's F(4x4,3x3), float32, stride 1, zero padding, channels together ([frames,H,W,C]):
// a quarter of the multiplications. Forward, and the gradient of the weights; the gradient of the input is a forward
// with turned weights. Threads are OpenMP's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "convssm/ops/winograd_kernels.h"

namespace convssm::ops {

struct WinogradShape {
  int64_t frames, height, width, in, out;
};

// Whether the kernels of this machine take these channel counts.
bool winograd_takes(int64_t in, int64_t out);

// Floats of packed weights.
size_t winograd_packed_size(int64_t in, int64_t out);

// packed: 64-byte aligned.
void winograd_pack(const WinogradWeights& weights, int64_t in, int64_t out, float* packed);

// y = activation(conv(x) + bias + add); y may be `add`.
void winograd_forward(const WinogradShape& shape, const float* x, const float* packed, const WinogradEpilogue& epilogue,
                      float* y);

// Gradient of the weights [out][in][3][3] for the gradient g of y.
void winograd_weight_gradient(const WinogradShape& shape, const float* x, const float* g, float* weight);

}  // namespace convssm::ops
