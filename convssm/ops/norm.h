// Normalizations over channels (axis 1), fused with the sum before or the activation after them.
// Biased variance, eps 1e-6 unless another is given, affine per channel. Frames never mix.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/activation.h"

namespace convssm::ops {

inline constexpr double kNormEps = 1e-6;

// activation(GroupNorm(x)): x [N,C,H,W] or [N,C], statistics per sample and group of C/groups channels over H and W.
at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      Activation activation = Activation::identity, double eps = kNormEps);

// LayerNorm over the channels of every pixel: x [N,C,H,W] or [N,C].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// LayerNorm(x + y).
at::Tensor add_layer_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, const at::Tensor& bias);

// The same in plain tensor operations: the references, any device.
at::Tensor group_norm_plain(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                            Activation activation = Activation::identity, double eps = kNormEps);
at::Tensor layer_norm_plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace convssm::ops
