// Weights packed for the Winograd kernels, kept while their tensor lives and does not change.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::ops {

// For y = conv(x, weight), weight [O,I,3,3].
at::Tensor pack_for_forward(const at::Tensor& weight);

// For the gradient of x: a convolution of the gradient of y with the weights turned around.
at::Tensor pack_for_input_gradient(const at::Tensor& weight);

// pack_for_forward, remembered. For weights that stay the same from call to call (generation).
at::Tensor kept_pack(const at::Tensor& weight);

// Drops what is kept of this weight: it is being trained, and an optimizer may write to it unseen.
void forget_pack(const at::Tensor& weight);

}  // namespace convssm::ops
