// The one door for all convolutions of the project, so that the engine behind it can change in one place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

// Cross-correlation with zero padding "SAME": x [N,C,H,W], weight [O,C,kh,kw], bias [O] -> [N,O,ceil(H/s),ceil(W/s)].
// Odd kernels pad (k-1)/2 on each side; for even kernels and strides the extra row and column go to the bottom and
// right.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias = {}, int64_t stride = 1);

}  // namespace convssm::ops
