// A layer around its state space, and the stack.
#include "convssm/cores/convs5.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/cores/layer_stack.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::cores {
namespace {

// Where act(x) = 1, by bisection; act grows from act(0) <= 1 to act(2) > 1 for all of them.
double unit_of(ops::Activation act) {
  double low = 0, high = 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (ops::activate(at::full({1}, middle, at::kDouble), act).item<double>() < 1 ? low : high) = middle;
  }
  return high;
}

}  // namespace

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
  register_gate(stream);
  if (options.wrapper.use_norm) norm_ = register_module("norm", nn::Norm(U));
}

void ConvS5LayerImpl::register_gate(const Stream& stream) {
  if (!options_.output_gate) return;
  const at::NoGradGuard no_grad;
  const int64_t U = options_.features;
  gate_ = register_module("gate", nn::Conv(U, U, options_.kernel_d, stream.split("gate")));
  gate_->weight.zero_();
  gate_->bias.fill_(unit_of(*options_.output_gate));
  out_ = register_module("out", nn::Dense(U, U, stream.split("out")));
  out_->weight.copy_(at::eye(U));
}

std::pair<at::Tensor, at::Tensor> ConvS5LayerImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                           const Timing& timing) {
  const at::Tensor v = wrap_before(options_.wrapper, norm_, u);
  auto [y, last] = ssm_->forward(v, L, x0, timing);
  if (d_) y = y + d_(v);
  at::Tensor o = block_(y);
  if (gate_) o = out_(o * ops::activate(gate_(v), *options_.output_gate));
  return {wrap_after(options_.wrapper, norm_, u, o, L, is_training()), last};
}

nn::Buffer ConvS5LayerImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const std::string& state) {
  const nn::Buffer v = plan_before(plan, options_.wrapper, norm_, u);
  const nn::Buffer through = d_ ? plan.conv(v, d_->weight, d_->bias) : nn::Buffer{};
  const nn::Buffer y = ssm_->plan(plan, v, through, state);
  nn::Buffer o = block_->plan(plan, y);
  if (gate_) {
    const nn::Buffer open = plan.conv(v, gate_->weight, gate_->bias, {.activation = *options_.output_gate});
    o = plan.conv(plan.multiply(o, open), out_->weight, out_->bias);
  }
  return plan_after(plan, options_.wrapper, norm_, u, o);
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
  ops::require("ConvS5", x.size(2) == options_.features, "x must be [L,B,{},H,W], got {}", options_.features,
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
    u = layers_[i]->plan(plan, u, state_key(i, "x"));
  }
  return u;
}

}  // namespace convssm::cores
