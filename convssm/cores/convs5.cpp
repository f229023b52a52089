// gamma is folded into B, and the factor 2 and the sign of Re(C x) into C, so a layer is two real convolutions around
// one scan; the complex state is 2P real channels. Without gradients the folded kernels are kept until a parameter's
// version moves: a step of generation then only convolves.
#include "convssm/cores/convs5.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/base/bounds.h"
#include "convssm/cores/layer_stack.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/initializers.h"
#include "convssm/ssm/ring_states.h"

namespace convssm::cores {
namespace {

using ops::require;

}  // namespace

void check_options(const ConvS5Options& o) {
  check_stack_options("ConvS5", o);
  require_between("ConvS5", "kernel_b", o.kernel_b, 1, most_kernel);
  require_between("ConvS5", "kernel_c", o.kernel_c, 1, most_kernel);
  require_between("ConvS5", "kernel_d", o.kernel_d, 1, most_kernel);
  require_between("ConvS5", "depthwise_kernel", o.depthwise_kernel, 1, most_kernel);
  if (o.init != StateInit::lru) return;
  ssm::check_ring("ConvS5", {o.r_min, o.r_max, o.max_phase});
  require("ConvS5", o.state_size % 2 == 0, "state_size must be even, got {}", o.state_size);
}

namespace {

// fresh x0 for the split states of all frames: fresh complex [L,P] or [L,B,P], x0 [2P] -> [L,B or 1,2P,1,1].
at::Tensor restarted(const at::Tensor& fresh, const at::Tensor& x0) {
  const int64_t P = x0.size(0) / 2;
  const at::Tensor x = fresh * at::complex(x0.narrow(0, 0, P), x0.narrow(0, P, P));
  const at::Tensor halves = at::cat({at::real(x), at::imag(x)}, -1);
  return (halves.dim() == 2 ? halves.unsqueeze(1) : halves).unsqueeze(-1).unsqueeze(-1);
}

StateInit parse_state_init(const std::string& text) {
  if (text == "hippo") return StateInit::hippo;
  if (text == "gaussian") return StateInit::gaussian;
  if (text == "lru") return StateInit::lru;
  fail(ErrorKind::usage, "[ConvS5] init must be hippo, gaussian or lru, got '{}'", text);
}

}  // namespace

ConvS5Options ConvS5Options::from_json(const nlohmann::json& json) {
  ConvS5Options o;
  OptionReader read("ConvS5", json);
  o.read_from(read);
  read.finish();
  return o;
}

void ConvS5Options::read_from(OptionReader& read) {
  ConvS5Options& o = *this;
  read_stack_options(read, o);
  read("kernel_b", o.kernel_b);
  read("kernel_c", o.kernel_c);
  read("kernel_d", o.kernel_d);
  read("init", [&](const std::string& text) { o.init = parse_state_init(text); });
  read("r_min", o.r_min);
  read("r_max", o.r_max);
  read("max_phase", o.max_phase);
  read("learned_state", o.learned_state);
  read("activation_block", [&](const std::string& text) { o.activation_block = nn::parse_block_kind(text); });
  read("activation", [&](const std::string& text) { o.activation = ops::parse_activation(text); });
  read("groups", o.groups);
  read("squeeze_excite", o.squeeze_excite);
  read("depthwise_kernel", o.depthwise_kernel);
  read("layer_scale", o.layer_scale);
  read("axis_states", o.axis_states);
  read("feedthrough", o.feedthrough);
  read("skip_connections", o.skip_connections);
}

ConvS5SSMImpl::ConvS5SSMImpl(const ConvS5Options& options, const Stream& stream) : options_(options) {
  const ssm::Spectrum spectrum = register_states(stream);
  const int64_t P = spectrum.lambda.size(0);
  Stream b = stream.split("B"), c = stream.split("C"), step = stream.split("log_step");
  b_tilde_ = register_parameter("B", ssm::init_conv_b(spectrum, options.features, options.kernel_b, b));
  c_tilde_ = register_parameter("C", ssm::init_conv_c(spectrum, options.features, options.kernel_c, c));
  if (options.init != StateInit::lru) {
    log_step_ = register_parameter("log_step", ssm::init_log_step(P, options.dt_min, options.dt_max, step));
  }
  if (options.learned_state) x0_ = register_parameter("x0", at::zeros({2 * P}));
}

// The eigenvalues; their coordinates are what B and C begin in.
ssm::Spectrum ConvS5SSMImpl::register_states(const Stream& stream) {
  const ConvS5Options& o = options_;
  Stream own = stream.split("A");
  if (o.init == StateInit::lru) {
    const ssm::RingStates ring = ssm::init_ring(o.state_size / 2, {o.r_min, o.r_max, o.max_phase}, own);
    nu_ = register_parameter("nu", ring.nu);
    theta_ = register_parameter("theta", ring.theta);
    return ssm::ring_spectrum(ring);
  }
  const ssm::Spectrum spectrum = o.init == StateInit::hippo ? ssm::hippo_spectrum(o.state_size, o.blocks)
                                                            : ssm::gaussian_spectrum(o.state_size, own);
  lambda_re_ = register_parameter("Lambda_re", at::real(spectrum.lambda).to(at::kFloat));
  lambda_im_ = register_parameter("Lambda_im", at::imag(spectrum.lambda).to(at::kFloat));
  return spectrum;
}

ssm::DiscreteStates ConvS5SSMImpl::discrete(const Timing& timing) const {
  if (options_.init == StateInit::lru) return ssm::discretize(ssm::RingStates{nu_, theta_}, timing);
  return ssm::discretize(
      ssm::DiagonalStates{lambda_re_, lambda_im_, log_step_, options_.clip_eigs, options_.discretization}, timing);
}

// With a constant step gamma is folded into B; with steps that vary it scales the effective inputs instead.
ConvS5SSMImpl::Kernels ConvS5SSMImpl::fold(const Timing& timing) const {
  const ssm::DiscreteStates states_now = discrete(timing);
  Kernels kernels{states_now.a, states_now.gamma, states_now.fresh, {}, {}};
  const int64_t P = states(), k = options_.kernel_b;
  at::Tensor b = at::view_as_complex(b_tilde_).view({P, options_.features, k, k});
  if (!timing.dt.defined()) b = b * kernels.gamma.view({P, 1, 1, 1});
  kernels.b = at::cat({at::real(b), at::imag(b)}, 0);
  const at::Tensor c = c_tilde_.permute({4, 3, 2, 0, 1});  // (re,im), U, P, kh, kw
  kernels.c = at::cat({2 * c[0], -2 * c[1]}, 1);
  return kernels;
}

const ConvS5SSMImpl::Kernels& ConvS5SSMImpl::folded(double step_rescale) {
  std::vector<nn::ParameterVersion> now;
  for (const auto& p : parameters(false)) now.push_back(nn::version_of(p));
  if (now != kept_for_ || step_rescale != kept_rescale_) {
    kept_ = fold({{}, {}, step_rescale});
    kept_for_ = std::move(now);
    kept_rescale_ = step_rescale;
  }
  return kept_;
}

void ConvS5SSMImpl::train(bool on) {
  kept_for_.clear();
  Module::train(on);
}

std::pair<at::Tensor, at::Tensor> ConvS5SSMImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                         const Timing& timing) {
  if (at::GradMode::is_enabled()) kept_for_.clear();
  const bool keep = !timing.varies() && !at::GradMode::is_enabled();
  const Kernels kernels = keep ? folded(timing.step_rescale) : fold(timing);
  at::Tensor bu = ops::conv2d(u, kernels.b);
  bu = bu.view({L, bu.size(0) / L, bu.size(1), bu.size(2), bu.size(3)});
  if (timing.dt.defined()) bu = ops::scale_states(kernels.gamma, bu);
  at::Tensor before = x0;
  if (x0_.defined()) {
    if (!before.defined()) before = x0_.view({1, -1, 1, 1}).expand({bu.size(1), -1, bu.size(3), bu.size(4)});
    if (kernels.fresh.defined()) bu = bu + restarted(kernels.fresh, x0_);
  }
  const ops::ScanResult scan = ops::scan_frames_(kernels.a, bu, if_defined(before));
  return {ops::conv2d(scan.x.flatten(0, 1), kernels.c), scan.last};
}

nn::Buffer ConvS5SSMImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const nn::Buffer& add,
                               const std::string& state) const {
  const Kernels kernels = fold({});
  const nn::Buffer x = plan.state(state, 2 * states(), u.height, u.width, x0_);
  plan.scan_step(x, kernels.a, plan.conv(u, kernels.b, {}));
  return plan.conv(x, kernels.c, {}, {.add = add});
}

ConvS5LayerImpl::ConvS5LayerImpl(const ConvS5Options& options, const Stream& stream) : options_(options) {
  const int64_t U = options.features;
  ssm_ = register_module("ssm", ConvS5SSM(options, stream.split("ssm")));
  if (options.feedthrough || options.activation_block == nn::BlockKind::standard) {
    d_ = register_module("D", nn::Conv(U, U, options.kernel_d, stream.split("D")));
  }
  const nn::BlockOptions block{options.activation_block, U,
                               options.kernel_d,         options.groups,
                               options.activation,       options.squeeze_excite,
                               options.depthwise_kernel, options.layer_scale,
                               options.axis_states};
  block_ = register_module("block", nn::make_activation_block(block, stream.split("block")));
  if (options.wrapper.use_norm) norm_ = register_module("norm", nn::Norm(U));
}

std::pair<at::Tensor, at::Tensor> ConvS5LayerImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                           const Timing& timing) {
  const at::Tensor v = wrap_before(options_.wrapper, norm_, u);
  auto [y, last] = ssm_->forward(v, L, x0, timing);
  if (d_) y = y + d_(v);
  return {wrap_after(options_.wrapper, norm_, u, block_(y), L, is_training()), last};
}

nn::Buffer ConvS5LayerImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const std::string& state) {
  const nn::Buffer v = plan_before(plan, options_.wrapper, norm_, u);
  const nn::Buffer through = d_ ? plan.conv(v, d_->weight, d_->bias) : nn::Buffer{};
  const nn::Buffer y = ssm_->plan(plan, v, through, state);
  return plan_after(plan, options_.wrapper, norm_, u, block_->plan(plan, y));
}

ConvS5Impl::ConvS5Impl(const ConvS5Options& options) : options_(options) {
  check_options(options);
  auto list = register_module("layers", torch::nn::ModuleList());
  const Stream stream(options.seed, "ConvS5");
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.emplace_back(options, stream.split("layer", i));
    list->push_back(layers_.back());
  }
}

void ConvS5Impl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

CoreOutput ConvS5Impl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  ops::require_dims("ConvS5", "x", x, 5, "[L,B,C,H,W]");
  require("ConvS5", x.size(2) == options_.features, "x must be [L,B,{},H,W], got {}", options_.features,
          ops::shape_text(x.sizes()));
  if (options_.init == StateInit::lru) {
    require_no_intervals("ConvS5", timing,
                         "states of init lru are in discrete time; use init hippo, which knows intervals");
  }
  finite_("ConvS5", *this);
  return run_layers("ConvS5", ssm_layers(layers_, x), x, state, timing, options_.skip_connections);
}

nn::Buffer ConvS5Impl::plan(nn::FramePlan& plan, const nn::Buffer& x) {
  finite_("ConvS5", *this);
  nn::Buffer u = x;
  std::vector<nn::Buffer> inputs;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int64_t source = skip_source(options_.skip_connections, i);
    if (source >= 0) u = plan.add(u, inputs[source]);
    inputs.push_back(u);
    u = layers_[i]->plan(plan, u, fmt::format("layers.{}.x", i));
  }
  return u;
}

}  // namespace convssm::cores
