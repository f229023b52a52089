// The layer loop, the states' names and the checks are written once for every cell. A layer is one unit of recompute();
// states go in and out of it as tensors, so that their gradients survive.
#include "convssm/cores/conv_rnn.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"

namespace convssm::cores {
namespace {

using ops::require;

// [L] or [L,B] -> bool [L,1,1,1,1] or [L,B,1,1,1].
at::Tensor per_frame(const at::Tensor& resets) {
  if (!resets.defined()) return {};
  return resets.to(at::kBool).view({resets.size(0), resets.dim() == 2 ? resets.size(1) : 1, 1, 1, 1});
}

}  // namespace

ConvRnnOptions ConvRnnOptions::from_json(const char* owner, const nlohmann::json& json) {
  ConvRnnOptions o;
  OptionReader read(owner, json);
  read("features", o.features);
  read("layers", o.layers);
  read("kernel", o.kernel);
  read("seed", o.seed);
  read_wrapper_options(read, o.wrapper);
  read.finish();
  return o;
}

void ConvCell::forget(States& states, const at::Tensor& resets, int64_t k) {
  if (!resets.defined()) return;
  for (at::Tensor& state : states) {
    if (state.defined()) state = at::where(resets[k], at::zeros({}, state.options()), state);
  }
}

// unbind, not one select for each frame: the backward of a select fills a tensor of all frames.
std::vector<at::Tensor> ConvCell::frames(const at::Tensor& x, int64_t L) {
  return x.view({L, x.size(0) / L, x.size(1), x.size(2), x.size(3)}).unbind(0);
}

ConvRnnImpl::ConvRnnImpl(const char* name, const ConvRnnOptions& options, std::vector<std::string> state_names,
                         MakeCell make)
    : name_(name), options_(options), state_names_(std::move(state_names)) {
  require(name, options.features > 0, "features must be positive, got {}", options.features);
  require_between(name, "layers", options.layers, 1, most_layers);
  require_between(name, "kernel", options.kernel, 1, most_kernel);
  cores::check(name, options.wrapper);
  auto list = register_module("layers", torch::nn::ModuleList());
  const Stream stream(options.seed, name);
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto module = std::make_shared<torch::nn::Module>();
    Layer layer{module, module->register_module("cell", make(options, stream.split("layer", i)))};
    if (options.wrapper.use_norm) layer.norm = module->register_module("norm", nn::Norm(options.features));
    layers_.push_back(std::move(layer));
    list->push_back(module);
  }
}

void ConvRnnImpl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

void ConvRnnImpl::check(const at::Tensor& x, const State& state, const Timing& timing) const {
  ops::require_dims(name_, "x", x, 5, "[L,B,C,H,W]");
  require(name_, x.size(2) == options_.features, "x must be [L,B,{},H,W], got {}", options_.features,
          ops::shape_text(x.sizes()));
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  require(name_, known, "x must be float32 or float64, got {}", ops::dtype_text(x));
  ops::require_like(name_, "x", x, parameters()[0]);
  const size_t tensors = layers_.size() * state_names_.size();
  require(name_, state.empty() || state.items().size() == tensors,
          "the state must be empty or hold {} tensors ({} per layer), got {}", tensors, state_names_.size(),
          state.items().size());
  ssm::check_timing(name_, timing, x.size(0), x.size(1));
  require_no_intervals(name_, timing);
}

std::string ConvRnnImpl::key(size_t layer, size_t which) const {
  return fmt::format("layers.{}.{}", layer, state_names_[which]);
}

ConvCell::States ConvRnnImpl::layer_states(size_t layer, const State& state, const at::Tensor& x) const {
  ConvCell::States states(state_names_.size());
  for (size_t j = 0; j < states.size() && !state.empty(); ++j) {
    const std::string name = key(layer, j);
    states[j] = state.get(name);
    ops::require_shape(name_, name.c_str(), states[j], x.sizes().slice(1));
    ops::require_like(name_, name.c_str(), states[j], x);
  }
  return states;
}

// The output of a layer, then its states.
ConvCell::States ConvRnnImpl::run_layer(size_t i, const at::Tensor& u, const ConvCell::States& states, int64_t L,
                                        const at::Tensor& resets) {
  const auto run = [layer = layers_[i], L, resets, wrapper = options_.wrapper,
                    training = is_training()](const nn::Tensors& in) mutable {
    const at::Tensor v = wrap_before(wrapper, layer.norm, in[0]);
    auto [h, last] = layer.cell->forward(v, L, {in.begin() + 1, in.end()}, resets);
    nn::Tensors out{wrap_after(wrapper, layer.norm, in[0], h, L, training)};
    out.insert(out.end(), last.begin(), last.end());
    return out;
  };
  nn::Tensors inputs{u};
  inputs.insert(inputs.end(), states.begin(), states.end());
  return nn::recompute({layers_[i].module.get()}, inputs, run);
}

CoreOutput ConvRnnImpl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  check(x, state, timing);
  finite_(name_, *this);
  const at::Tensor resets = per_frame(timing.resets);
  const int64_t L = x.size(0);
  CoreOutput out;
  at::Tensor u = x.flatten(0, 1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ConvCell::States done = run_layer(i, u, layer_states(i, state, x), L, resets);
    u = done[0];
    for (size_t j = 1; j < done.size(); ++j) out.state.set(key(i, j - 1), done[j]);
  }
  out.y = u.view(x.sizes());
  return out;
}

nn::Buffer ConvRnnImpl::plan(nn::FramePlan& plan, const nn::Buffer& x) {
  finite_(name_, *this);
  nn::Buffer u = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    std::vector<nn::Buffer> states;
    for (size_t j = 0; j < state_names_.size(); ++j) {
      states.push_back(plan.state(key(i, j), options_.features, x.height, x.width));
    }
    const nn::Buffer v = plan_before(plan, options_.wrapper, layer.norm, u);
    u = plan_after(plan, options_.wrapper, layer.norm, u, layer.cell->plan(plan, v, states));
  }
  return u;
}

}  // namespace convssm::cores
