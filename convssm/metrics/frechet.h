// The Frechet distance between two sets of features, each taken as a normal distribution (Dowson and Landau 1982):
//   |m1 - m2|^2 + tr(S1 + S2) - 2 tr sqrt(sqrt(S1) S2 sqrt(S1)),   S with 1/(n-1).
// No matrix square root is taken: with S1 = A^T A and S2 = B^T B (A, B the centred sets over sqrt(n-1)) the last trace
// is the sum of the singular values of A B^T. That is exact where a set has fewer members than features and S is
// singular, and nothing is squared, so all digits of float64 remain.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// x [n,d], y [m,d] float32 or float64, n and m at least 2; computed in float64. Never below 0.
double frechet_distance(const at::Tensor& x, const at::Tensor& y);

}  // namespace convssm::metrics
