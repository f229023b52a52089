// The general convolutional state space model, real-valued, with full kernels of any width:
//   x_k = A_bar * x_{k-1} + B_bar * u_k         x [B,P,H,W], u [B,U,H,W]
//   y_k = C * x_k + D * u_k
// In discrete time A_bar = A and B_bar = B are learned; in continuous time A, B and the step delta are.
// It is the reference for the propositions of the paper and for small states; ConvS5 is the fast diagonal case.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <utility>

#include "convssm/base/random.h"
#include "convssm/ssm/conv_operator.h"
#include "convssm/ssm/discretize_kernels.h"

namespace convssm::ssm {

enum class TimeDomain { discrete, continuous };
enum class Evaluation { sequential, parallel };

struct ConvSSMOptions {
  int64_t features = 0;    // U, channels of the input
  int64_t outputs = 0;     // channels of the output, 0: as many as the input
  int64_t state_size = 0;  // P
  int64_t kernel_a = 1;    // odd
  int64_t kernel_b = 3;
  int64_t kernel_c = 3;
  int64_t kernel_d = 0;  // 0: no D
  Boundary boundary = Boundary::zero;
  TimeDomain time = TimeDomain::discrete;
  // For continuous time:
  Discretization discretization = Discretization::zoh;
  bool step_per_state = true;  // delta [P], or one delta for all states
  double dt_min = 1e-3;
  double dt_max = 1e-1;
};

// Initial values: B, C he_normal, D lecun_normal. A is a normal kernel K scaled so that the spectral norms of its taps
// sum to 0.9, hence |K * x| <= 0.9 |x| on both boundaries. In continuous time A = K - I, stable for every zoh and
// bilinear step and for euler steps up to 1.
class ConvSSMImpl : public torch::nn::Module {
 public:
  ConvSSMImpl(const ConvSSMOptions& options, Stream& stream);

  // u [L,B,U,H,W], x0 [B,P,H,W] or undefined for zeros -> y [L,B,outputs,H,W] and the last state.
  // The parallel algorithm needs kernel_a = 1 or the periodic boundary.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& u, const at::Tensor& x0 = {},
                                            Evaluation algorithm = Evaluation::sequential);

  // u [B,U,H,W], x as x0 above -> y [B,outputs,H,W] and the next state. A loop computes kernels() once.
  std::pair<at::Tensor, at::Tensor> step(const at::Tensor& u, const at::Tensor& x, const Kernels& kernels);
  std::pair<at::Tensor, at::Tensor> step(const at::Tensor& u, const at::Tensor& x) { return step(u, x, kernels()); }

  // A_bar and B_bar.
  Kernels kernels() const;
  const ConvSSMOptions& options() const { return options_; }

  at::Tensor a, b, c, d;  // [P,P,ka,ka], [P,U,kb,kb], [outputs,P,kc,kc], [outputs,U,kd,kd] or undefined
  at::Tensor log_step;    // [P] or [1] in continuous time, else undefined

 private:
  at::Tensor state_or_zeros(const at::Tensor& x, const at::Tensor& frame) const;
  at::Tensor output(const at::Tensor& x, const at::Tensor& u) const;

  ConvSSMOptions options_;
};
TORCH_MODULE(ConvSSM);

}  // namespace convssm::ssm
