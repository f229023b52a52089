// The same folding as ConvS5 with dense products for convolutions. Lambda, B, C, D and log_step are parameters of a
// module "ssm" of their own, so that both cores have the same names in a checkpoint.
#include "convssm/cores/s5.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/cores/layer_stack.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/hippo.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {

S5Options S5Options::from_json(const nlohmann::json& json) {
  S5Options o;
  OptionReader read("S5", json);
  read_stack_options(read, o);
  read.finish();
  return o;
}
S5LayerImpl::S5LayerImpl(const S5Options& options, const Stream& stream) : options_(options) {
  const ssm::Spectrum spectrum = ssm::hippo_spectrum(options.state_size, options.blocks);
  const int64_t P = spectrum.lambda.size(0), U = options.features;
  Stream b = stream.split("B"), c = stream.split("C"), d = stream.split("D"), step = stream.split("log_step");
  auto ssm = register_module("ssm", std::make_shared<torch::nn::Module>());
  lambda_re_ = ssm->register_parameter("Lambda_re", at::real(spectrum.lambda).to(at::kFloat));
  lambda_im_ = ssm->register_parameter("Lambda_im", at::imag(spectrum.lambda).to(at::kFloat));
  b_tilde_ = ssm->register_parameter("B", ssm::init_s5_b(spectrum, U, b));
  c_tilde_ = ssm->register_parameter("C", ssm::init_s5_c(spectrum, U, c));
  d_ = ssm->register_parameter("D", ssm::normal({U}, 1, d));
  log_step_ = ssm->register_parameter("log_step", ssm::init_log_step(P, options.dt_min, options.dt_max, step));
  dense_ = register_module("dense", nn::Dense(U, U, stream.split("dense")));
  if (options.wrapper.use_norm) norm_ = register_module("norm", nn::Norm(U));
}

std::pair<at::Tensor, at::Tensor> S5LayerImpl::state_space(const at::Tensor& v, int64_t L, const at::Tensor& x0,
                                                           const Timing& timing) {
  const auto discrete =
      ssm::discretize({lambda_re_, lambda_im_, log_step_, options_.clip_eigs, options_.discretization}, timing);
  at::Tensor b = at::view_as_complex(b_tilde_);
  if (!timing.dt.defined()) b = b * discrete.gamma.unsqueeze(-1);
  at::Tensor bu = ops::dense(v, at::cat({at::real(b), at::imag(b)}, 0));
  bu = bu.view({L, bu.size(0) / L, bu.size(1)});
  if (timing.dt.defined()) bu = ops::scale_states(discrete.gamma, bu);
  const OptionalTensor x0_given = if_defined(x0);
  const ops::ScanResult scan = ops::scan(discrete.a, bu, x0_given);
  const at::Tensor c = at::cat({2 * c_tilde_.select(-1, 0), -2 * c_tilde_.select(-1, 1)}, 1);
  return {ops::dense(scan.x.flatten(0, 1), c) + d_ * v, scan.last};
}

std::pair<at::Tensor, at::Tensor> S5LayerImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                       const Timing& timing) {
  const at::Tensor v = wrap_before(options_.wrapper, norm_, u);
  auto [y, last] = state_space(v, L, x0, timing);
  const at::Tensor g = ops::activate(y, ops::Activation::gelu);
  const at::Tensor o = g * at::sigmoid(dense_(g));
  return {wrap_after(options_.wrapper, norm_, u, o, L, is_training()), last};
}

S5Impl::S5Impl(const S5Options& options) : options_(options) {
  check_stack_options("S5", options);
  auto list = register_module("layers", torch::nn::ModuleList());
  const Stream stream(options.seed, "S5");
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.emplace_back(options, stream.split("layer", i));
    list->push_back(layers_.back());
  }
}

void S5Impl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

CoreOutput S5Impl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  ops::require_dims("S5", "x", x, 3, "[L,B,C]");
  ops::require("S5", x.size(2) == options_.features, "x must be [L,B,{}], got {}", options_.features,
               ops::shape_text(x.sizes()));
  finite_("S5", *this);
  return run_layers("S5", ssm_layers(layers_, x), x, state, timing);
}

}  // namespace convssm::cores
