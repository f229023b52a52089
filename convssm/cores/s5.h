// S5: the state space layer on vectors (one token per frame), the baseline that ConvS5 grew out of.
//   x_k = lambda_bar x_{k-1} + B_bar u_k,   y_k = 2 Re(C x_k) + D u_k,   g = gelu(y),   out = norm(u + g sigmoid(W g))
// A core on vectors: x [L,B,U]. State: `layers.<i>.x`, [B,2P], Re half first.
#pragma once

#include <torch/nn/pimpl.h>

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/cores/core.h"
#include "convssm/cores/layer_wrapper.h"

namespace convssm::cores {

struct S5Options {
  int64_t features = 0;    // U
  int64_t state_size = 0;  // N, the real state; P = N/2 complex states are stored
  int64_t layers = 1;
  int64_t blocks = 1;
  bool clip_eigs = true;
  double dt_min = 1e-3, dt_max = 1e-1;
  ssm::Discretization discretization = ssm::Discretization::zoh;
  WrapperOptions wrapper = {};
  uint64_t seed = 0;

  // As ConvS5Options::from_json.
  static S5Options from_json(const nlohmann::json& json);
};

// One layer. Parameters as published: ssm.Lambda_re [P], ssm.Lambda_im [P], ssm.B [P,U,2], ssm.C [U,P,2], ssm.D [U],
// ssm.log_step [P,1]; dense and norm.
class S5LayerImpl : public torch::nn::Module {
 public:
  S5LayerImpl(const S5Options& options, const Stream& stream);

  // u [L*B,U], x0 [B,2P] or undefined -> out [L*B,U], x_L [B,2P].
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& u, int64_t L, const at::Tensor& x0, const Timing& timing);
  int64_t states() const { return lambda_re_.size(0); }

 private:
  std::pair<at::Tensor, at::Tensor> state_space(const at::Tensor& v, int64_t L, const at::Tensor& x0,
                                                const Timing& timing);

  S5Options options_;
  at::Tensor lambda_re_, lambda_im_, b_tilde_, c_tilde_, d_, log_step_;
  nn::Dense dense_{nullptr};
  nn::Norm norm_{nullptr};
};
TORCH_MODULE(S5Layer);

class S5Impl : public Core {
 public:
  explicit S5Impl(const S5Options& options);
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  bool draws_noise() const override { return options_.wrapper.dropout > 0; }
  const S5Options& options() const { return options_; }
  void train(bool on = true) override;

 private:
  S5Options options_;
  std::vector<S5Layer> layers_;
  nn::FiniteCheck finite_;
};
TORCH_MODULE(S5);

}  // namespace convssm::cores
