// From continuous to discrete time, for full kernels: x' = A * x + B * u becomes x_k = A_bar * x_{k-1} + B_bar * u_k.
// With M = diag(delta) A, and A pointwise (a P x P matrix shared by all pixels):
//   zoh       A_bar = exp(M)                     B_bar = phi(M) diag(delta) B,  phi(M) = M^-1 (exp(M) - I)
//   bilinear  A_bar = (I - M/2)^-1 (I + M/2)     B_bar = (I - M/2)^-1 diag(delta) B
//   euler     A_bar = I + M                      B_bar = diag(delta) B,         for any width of A
// Both parts of zoh come from exp [[M, I], [0, 0]] = [[exp(M), phi(M)], [0, I]], so a singular A is no exception.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ssm/discretize.h"

namespace convssm::ssm {

struct Kernels {
  at::Tensor a;  // [P,P,k,k]
  at::Tensor b;  // [P,U,kb,kb]
};

// delta: [P] (a step per state) or [1] (one for all), positive. Computed in float64, returned in the dtype of `a`.
Kernels discretize_kernels(const Kernels& continuous, const at::Tensor& delta, Discretization method);

}  // namespace convssm::ssm
