// Liquid dynamics: the input moves the eigenvalues of the recurrence x_k = a_k x_{k-1} + b_k, for every pixel and state by itself,
//   a = v / max(1, |v|),  v = a_bar + l b.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::ops {

// a_bar complex [P] or [N,P], l complex [P], b [N,2P,H,W] (Re half, then Im half) of the same precision -> a complex
// [N,P,H,W]. Differentiable once.
at::Tensor liquid_coefficients(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b);

// The same in plain tensor operations: the reference, any device, any derivative.
at::Tensor liquid_coefficients_plain(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b);

}  // namespace convssm::ops
