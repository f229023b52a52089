// ops::winograd on tensors, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

// x [N,C,H,W] and weight [O,C,3,3], float32 on the CPU, stride 1, padding 1; winograd_takes(C, O) must hold.
// Without gradients the packed weights are kept while the weight is the same, unchanged tensor.
at::Tensor winograd_conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias);

}  // namespace convssm::ops
