// ConvS5: a stack of convolutional state space layers with a diagonal complex state per pixel (the paper's
// section 3.4).
//   x_k = lambda_bar x_{k-1} + B_bar * u_k,   y_k = 2 Re(C * x_k),   out_k = norm(u_k + block(y_k))
// B and C are single real convolutions, the recurrence is ops::scan. Beyond the paper, lambda_bar and the inputs may
// depend on u_k (state_dynamics.h), and block(y_k) may be multiplied by a gate, W_o(block(y_k) act(G * u_k)), both being
// the paper's layer at their initial values. State: `layers.<i>.x`, [B,2P,H,W], Re half first; it begins at zero or,
// with learned_state, at a parameter, and so it does after a reset.
#pragma once

#include <torch/nn/pimpl.h>

#include <string>
#include <utility>
#include <vector>

#include "convssm/cores/convs5_options.h"
#include "convssm/cores/convs5_ssm.h"
#include "convssm/cores/core.h"

namespace convssm::cores {

// One layer: state space, activation block, gate, norm, residual. The gate's parameters are `gate` (a convolution with
// the kernel of D, zero but for a bias where act is one) and `out` (a dense layer, the identity).
class ConvS5LayerImpl : public torch::nn::Module {
 public:
  ConvS5LayerImpl(const ConvS5Options& options, const Stream& stream);
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& u, int64_t L, const at::Tensor& x0, const Timing& timing);
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::string& state);
  int64_t states() const { return ssm_->states(); }

 private:
  void register_gate(const Stream& stream);

  ConvS5Options options_;
  ConvS5SSM ssm_{nullptr};
  nn::Conv d_{nullptr};
  nn::ActivationBlock block_{nullptr};
  nn::Conv gate_{nullptr};
  nn::Dense out_{nullptr};
  nn::Norm norm_{nullptr};
};
TORCH_MODULE(ConvS5Layer);

class ConvS5Impl : public Core {
 public:
  explicit ConvS5Impl(const ConvS5Options& options);
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  bool has_plan() const override { return true; }
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& x) override;
  bool draws_noise() const override { return options_.wrapper.dropout > 0; }
  const ConvS5Options& options() const { return options_; }
  void train(bool on = true) override;

 private:
  ConvS5Options options_;
  std::vector<ConvS5Layer> layers_;
  nn::FiniteCheck finite_;
};
TORCH_MODULE(ConvS5);

}  // namespace convssm::cores
