// ConvS5: a stack of convolutional state space layers with a diagonal complex state per pixel (the paper's
// section 3.4).
//   x_k = lambda_bar x_{k-1} + B_bar * u_k,   y_k = 2 Re(C * x_k),   out_k = norm(u_k + block(y_k))
// B and C are single real convolutions, the recurrence is ops::scan. State: `layers.<i>.x`, [B,2P,H,W], Re half first; it
// begins at zero or, with learned_state, at a parameter, and so it does after a reset.
#pragma once

#include <torch/nn/pimpl.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/cores/core.h"
#include "convssm/cores/layer_wrapper.h"
#include "convssm/nn/activation_block.h"
#include "convssm/ssm/hippo.h"

namespace convssm::cores {

// How the states are parameterized and begin: hippo and gaussian in continuous time, lru in discrete time (ssm/ring_states.h),
// which takes no dt and no step_rescale.
enum class StateInit { hippo, gaussian, lru };

struct ConvS5Options {
  int64_t features = 0;    // U, channels of the frames
  int64_t state_size = 0;  // N, the real state; P = N/2 complex states are stored
  int64_t layers = 1;
  int64_t blocks = 1;     // equal blocks of the HiPPO matrix
  bool clip_eigs = true;  // real parts of the eigenvalues at most -1e-4
  int64_t kernel_b = 3, kernel_c = 3, kernel_d = 3;
  double dt_min = 1e-3, dt_max = 1e-1;  // range of the initial time steps
  ssm::Discretization discretization = ssm::Discretization::zoh;
  StateInit init = StateInit::hippo;
  double r_min = 0.9, r_max = 0.999;     // of lru: the ring of the initial eigenvalues
  double max_phase = 6.283185307179586;  // of lru: their angles are uniform in (0, max_phase]
  bool learned_state = false;            // the state before the first frame is a parameter, the same in every pixel
  nn::BlockKind activation_block = nn::BlockKind::resnet;
  ops::Activation activation = ops::Activation::gelu;
  int64_t groups = 32;  // of the group norms in the activation block
  bool squeeze_excite = false;
  int64_t depthwise_kernel = 7;  // of the block convnext
  double layer_scale = 0.1;      // of the block convnext, at the start
  int64_t axis_states = 16;      // of the block s4nd
  bool feedthrough = false;      // adds D * u to y; the block `standard` always has it
  WrapperOptions wrapper = {};
  bool skip_connections = false;  // input of layer 3 to layer 8, of layer 6 to layer 11
  uint64_t seed = 0;              // of the initial values

  // From {"features": 64, "state_size": 64, ...}; the wrapper's options are on the same level. Unknown keys are errors.
  static ConvS5Options from_json(const nlohmann::json& json);
  void read_from(OptionReader& read);
};

// Error(usage) for values that no layer can be made of.
void check_options(const ConvS5Options& options);

// The state space of one layer. Parameters as published: Lambda_re [P], Lambda_im [P], B [P, U*kB*kB, 2],
// C [kC, kC, P, U, 2], log_step [P,1]; the last axis of B and C is (re, im). With init lru: nu [P] and theta [P] in place of
// Lambda and log_step. With learned_state: x0 [2P], Re half first, zero at the start.
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
  Kernels fold(const Timing& timing) const;
  const Kernels& folded(double step_rescale);  // kept while the parameters do not change; without gradients only

  ConvS5Options options_;
  at::Tensor lambda_re_, lambda_im_, b_tilde_, c_tilde_, log_step_;
  at::Tensor nu_, theta_;  // of lru
  at::Tensor x0_;          // undefined: zero
  Kernels kept_;
  std::vector<nn::ParameterVersion> kept_for_;
  double kept_rescale_ = 0;
};
TORCH_MODULE(ConvS5SSM);

// One layer: state space, activation block, norm, residual.
class ConvS5LayerImpl : public torch::nn::Module {
 public:
  ConvS5LayerImpl(const ConvS5Options& options, const Stream& stream);
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& u, int64_t L, const at::Tensor& x0, const Timing& timing);
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::string& state);
  int64_t states() const { return ssm_->states(); }

 private:
  ConvS5Options options_;
  ConvS5SSM ssm_{nullptr};
  nn::Conv d_{nullptr};
  nn::ActivationBlock block_{nullptr};
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
