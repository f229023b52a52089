#include "convssm/cores/convs5.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/hippo.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {
namespace {

using ops::require;

void check_options(const ConvS5Options& o) {
  require("ConvS5", o.features > 0, "features must be positive, got {}", o.features);
  require("ConvS5", o.state_size > 0, "state_size must be positive, got {}", o.state_size);
  require("ConvS5", o.layers > 0, "layers must be positive, got {}", o.layers);
  require("ConvS5", o.kernel_b > 0 && o.kernel_c > 0 && o.kernel_d > 0,
          "kernels must be positive, got B {}, C {}, D {}", o.kernel_b, o.kernel_c, o.kernel_d);
  require("ConvS5", o.dt_min > 0 && o.dt_max >= o.dt_min && std::isfinite(o.dt_max),
          "expected 0 < dt_min <= dt_max, got {} and {}", o.dt_min, o.dt_max);
  check("ConvS5", o.wrapper);
}

ssm::Spectrum initial_spectrum(const ConvS5Options& o, const Stream& stream) {
  if (o.init == StateInit::hippo) return ssm::hippo_spectrum(o.state_size, o.blocks);
  Stream own = stream.split("A");
  return ssm::gaussian_spectrum(o.state_size, own);
}

// Where the input of an earlier layer is added again, -1 = nowhere.
int64_t skip_source(int64_t layer) { return layer == 8 ? 3 : layer == 11 ? 6 : -1; }

}  // namespace

ConvS5SSMImpl::ConvS5SSMImpl(const ConvS5Options& options, const Stream& stream) : options_(options) {
  const ssm::Spectrum spectrum = initial_spectrum(options, stream);
  const int64_t P = spectrum.lambda.size(0);
  Stream b = stream.split("B"), c = stream.split("C"), step = stream.split("log_step");
  lambda_re_ = register_parameter("Lambda_re", at::real(spectrum.lambda).to(at::kFloat));
  lambda_im_ = register_parameter("Lambda_im", at::imag(spectrum.lambda).to(at::kFloat));
  b_tilde_ = register_parameter("B", ssm::init_conv_b(spectrum, options.features, options.kernel_b, b));
  c_tilde_ = register_parameter("C", ssm::init_conv_c(spectrum, options.features, options.kernel_c, c));
  log_step_ = register_parameter("log_step", ssm::init_log_step(P, options.dt_min, options.dt_max, step));
}

// With a constant step gamma is folded into B; with steps that vary it scales the effective inputs instead.
ConvS5SSMImpl::Kernels ConvS5SSMImpl::fold(const Timing& timing) const {
  const auto discrete =
      ssm::discretize({lambda_re_, lambda_im_, log_step_, options_.clip_eigs, options_.discretization}, timing);
  Kernels kernels{discrete.a, discrete.gamma, {}, {}};
  const int64_t P = lambda_re_.size(0), k = options_.kernel_b;
  at::Tensor b = at::view_as_complex(b_tilde_).view({P, options_.features, k, k});
  if (!timing.dt.defined()) b = b * discrete.gamma.view({P, 1, 1, 1});
  kernels.b = at::cat({at::real(b), at::imag(b)}, 0);
  const at::Tensor c = c_tilde_.permute({4, 3, 2, 0, 1});  // (re,im), U, P, kh, kw
  kernels.c = at::cat({2 * c[0], -2 * c[1]}, 1);
  return kernels;
}

const ConvS5SSMImpl::Kernels& ConvS5SSMImpl::folded() {
  std::vector<std::pair<const void*, uint64_t>> now;
  for (const auto& p : parameters(false)) now.emplace_back(p.data_ptr(), p._version());
  if (now != kept_for_) {
    kept_ = fold({});
    kept_for_ = std::move(now);
  }
  return kept_;
}

std::pair<at::Tensor, at::Tensor> ConvS5SSMImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                         const Timing& timing) {
  const bool plain = !timing.varies() && timing.step_rescale == 1;
  const Kernels kernels = plain && !at::GradMode::is_enabled() ? folded() : fold(timing);
  at::Tensor bu = ops::conv2d(u, kernels.b);
  bu = bu.view({L, bu.size(0) / L, bu.size(1), bu.size(2), bu.size(3)});
  if (timing.dt.defined()) bu = ops::scale_states(kernels.gamma, bu);
  const auto x0_given = x0.defined() ? c10::make_optional(x0) : c10::nullopt;
  const ops::ScanResult scan = ops::scan_frames_(kernels.a, bu, x0_given);
  return {ops::conv2d(scan.x.flatten(0, 1), kernels.c), scan.last};
}

ConvS5LayerImpl::ConvS5LayerImpl(const ConvS5Options& options, const Stream& stream) : options_(options) {
  const int64_t U = options.features;
  ssm_ = register_module("ssm", ConvS5SSM(options, stream.split("ssm")));
  if (options.feedthrough || options.activation_block == nn::BlockKind::standard) {
    d_ = register_module("D", nn::Conv(U, U, options.kernel_d, stream.split("D")));
  }
  const nn::BlockOptions block{options.activation_block, U, options.kernel_d, options.groups, options.activation,
                               options.squeeze_excite};
  block_ = register_module("block", nn::ActivationBlock(block, stream.split("block")));
  if (options.wrapper.use_norm) norm_ = register_module("norm", nn::Norm(U));
}

std::pair<at::Tensor, at::Tensor> ConvS5LayerImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                           const Timing& timing) {
  const at::Tensor v = wrap_before(options_.wrapper, norm_, u);
  auto [y, last] = ssm_->forward(v, L, x0, timing);
  if (d_) y = y + d_(v);
  return {wrap_after(options_.wrapper, norm_, u, block_(y), L, is_training()), last};
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

CoreOutput ConvS5Impl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  ops::require_dims("ConvS5", "x", x, 5, "[L,B,C,H,W]");
  const int64_t L = x.size(0), B = x.size(1), U = options_.features;
  require("ConvS5", x.size(2) == U, "x must be [L,B,{},H,W], got {}", U, ops::shape_text(x.sizes()));
  ops::require_like("ConvS5", "x", x, layers_[0]->parameters()[0]);
  ssm::check_timing("ConvS5", timing, L, B);
  finite_("ConvS5", *this);

  at::Tensor u = x.flatten(0, 1);
  CoreOutput out;
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string key = "layers." + std::to_string(i) + ".x";
    const at::Tensor x0 = state.get(key);
    if (x0.defined()) {
      ops::require_shape("ConvS5", key.c_str(), x0, {B, 2 * layers_[i]->states(), x.size(3), x.size(4)});
      ops::require_like("ConvS5", key.c_str(), x0, x);
    }
    const int64_t source = options_.skip_connections ? skip_source(static_cast<int64_t>(i)) : -1;
    if (source >= 0) u = u + inputs[source];
    if (options_.skip_connections) inputs.push_back(u);
    auto [y, last] = layers_[i]->forward(u, L, x0, timing);
    u = y;
    out.state.set(key, last);
  }
  out.y = u.view({L, B, U, x.size(3), x.size(4)});
  return out;
}

}  // namespace convssm::cores
