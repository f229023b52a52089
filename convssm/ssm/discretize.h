// From continuous to discrete time, for a diagonal state matrix:
//   x' = lambda x + b u   becomes   x_k = lambda_bar x_{k-1} + gamma b u_k,   with z = lambda delta:
//   zoh       lambda_bar = exp(z)                    gamma = delta phi(z),  phi(z) = (exp(z) - 1) / z,  phi(0) = 1
//   bilinear  lambda_bar = (1 + z/2) / (1 - z/2)     gamma = delta / (1 - z/2)
//   euler     lambda_bar = 1 + z                     gamma = delta
// In float64, since HiPPO's |z| reaches 1e5. The error is that of the angle when z is rounded to float64: 1e-16 |z|.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace convssm::ssm {

enum class Discretization { zoh, bilinear, euler };

// "zoh", "bilinear" or "euler".
const char* name(Discretization method);
Discretization parse_discretization(const std::string& text);

struct Discrete {
  at::Tensor lambda_bar;  // complex128, the shape of lambda and delta broadcast
  at::Tensor gamma;       // the same
};

// lambda complex128, delta float64 and positive, broadcastable to each other. Differentiable, also at lambda = 0.
Discrete discretize(const at::Tensor& lambda, const at::Tensor& delta, Discretization method);

// phi(z) = (exp(z) - 1) / z for complex128 z to 1e-14 of |phi|, and its gradient, everywhere including z = 0.
at::Tensor phi(const at::Tensor& z);

// min(lambda_re, -1e-4) if `clip`, so that |lambda_bar| < 1; the gradient is zero while clipped.
at::Tensor clip_eigenvalues(const at::Tensor& lambda_re, bool clip);

// Throws if a time step is zero, negative, infinite or NaN, naming the first such value. Reads the whole tensor.
void check_delta(const at::Tensor& delta);

}  // namespace convssm::ssm
