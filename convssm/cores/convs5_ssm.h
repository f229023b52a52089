// The state space of a ConvS5 layer: x_k = lambda_bar x_{k-1} + B_bar * u_k, y_k = 2 Re(C * x_k), with coefficients of
// every pixel where its dynamics depend on the input.
#pragma once

#include <torch/nn/pimpl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convssm/cores/convs5_options.h"
#include "convssm/cores/core.h"
#include "convssm/ssm/hippo.h"

namespace convssm::cores {

// Parameters as published: Lambda_re [P], Lambda_im [P], B [P, U*kB*kB, 2],
// C [kC, kC, P, U, 2], log_step [P,1]; the last axis of B and C is (re, im). With init lru: nu [P] and theta [P] in place of
// Lambda and log_step. With learned_state: x0 [2P], Re half first, zero at the start. `dynamics` holds those of the dynamics.
class ConvS5SSMImpl : public torch::nn::Module {
 public:
  ConvS5SSMImpl(const ConvS5Options& options, const Stream& stream);

  // u [L*B,U,H,W], x0 [B,2P,H,W] or undefined -> y [L*B,U,H,W], x_L [B,2P,H,W].
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& u, int64_t L, const at::Tensor& x0, const Timing& timing);

  // The same for one frame in a plan; `add` is added to y.
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const nn::Buffer& add, const std::string& state) const;

  int64_t states() const { return b_tilde_.size(0); }  // P
  void train(bool on = true) override;                 // forgets what is kept

 private:
  struct Kernels {  // what the convolutions and the scan take
    at::Tensor a, gamma, fresh, b, c;
  };
  ssm::Spectrum register_states(const Stream& stream);
  ssm::DiscreteStates discrete(const Timing& timing) const;
  ops::PixelStates rates() const;
  LayerStates layer_states(const Kernels& kernels, const Timing& timing, int64_t L, int64_t B) const;
  std::pair<at::Tensor, at::Tensor> varying(const at::Tensor& u, int64_t L, const at::Tensor& x0, const Timing& timing);
  at::Tensor first_state(const at::Tensor& x0, const at::Tensor& bu) const;
  Kernels fold(const Timing& timing) const;
  const Kernels& folded(double step_rescale);  // kept while the parameters do not change; without gradients only

  ConvS5Options options_;
  at::Tensor lambda_re_, lambda_im_, b_tilde_, c_tilde_, log_step_;
  at::Tensor nu_, theta_;  // of lru
  at::Tensor x0_;          // undefined: zero
  std::shared_ptr<StateDynamics> dynamics_;
  Kernels kept_;
  std::vector<nn::ParameterVersion> kept_for_;
  double kept_rescale_ = 0;
};
TORCH_MODULE(ConvS5SSM);

}  // namespace convssm::cores
