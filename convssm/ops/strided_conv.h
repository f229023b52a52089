// Convolutions that change the size of a frame by their stride: down without the padding of ops/conv2d.h, and transposed, up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

// Cross-correlation, `padding` zeros on each side: x [N,C,H,W], weight [O,C,kh,kw], bias [O] ->
// [N,O,(H + 2 padding - kh) / stride + 1, ...].
at::Tensor strided_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                          int64_t padding = 0);

// The transposed one, weight [C,O,kh,kw] -> [N,O,(H - 1) stride + kh - 2 padding, ...].
at::Tensor transposed_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                             int64_t padding = 0);

}  // namespace convssm::ops
