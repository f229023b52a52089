// The one door for matrix products with weights, and the complex scaling of states.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

// Over channels (axis 1): x [N,C] or [N,C,H,W], weight [O,C], bias [O] -> [N,O] or [N,O,H,W].
at::Tensor dense(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias = {});

// gamma * b for complex gamma [L,P] or [L,B,P] and split states: b [L,B,2P] or [L,B,2P,H,W], Re half then Im half.
at::Tensor scale_states(const at::Tensor& gamma, const at::Tensor& b);

}  // namespace convssm::ops
