// The states' names, the checks and the plan are written once for every cell; the layers are run by layer_stack.h.
#include "convssm/cores/conv_cells.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/nn/frame_plan.h"
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

ConvCellOptions ConvCellOptions::from_json(const char* owner, const nlohmann::json& json) {
  ConvCellOptions o;
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

ConvCellStackImpl::ConvCellStackImpl(const char* name, const ConvCellOptions& options,
                                     std::vector<std::string> state_names, MakeCell make)
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

void ConvCellStackImpl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

StackLayer ConvCellStackImpl::stack_layer(const Layer& layer, const at::Tensor& x) const {
  StackLayer made{layer.module.get(), {}, {}};
  for (const std::string& name : state_names_) made.states.push_back({name, x.sizes().slice(1).vec()});
  made.run = [layer = layer, wrapper = options_.wrapper, training = is_training()](const nn::Tensors& in, int64_t L,
                                                                                   const Timing& timing) mutable {
    const at::Tensor v = wrap_before(wrapper, layer.norm, in[0]);
    auto [h, last] = layer.cell->forward(v, L, {in.begin() + 1, in.end()}, per_frame(timing.resets));
    nn::Tensors out{wrap_after(wrapper, layer.norm, in[0], h, L, training)};
    out.insert(out.end(), last.begin(), last.end());
    return out;
  };
  return made;
}

CoreOutput ConvCellStackImpl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  ops::require_dims(name_, "x", x, 5, "[L,B,C,H,W]");
  require(name_, x.size(2) == options_.features, "x must be [L,B,{},H,W], got {}", options_.features,
          ops::shape_text(x.sizes()));
  require_no_intervals(name_, timing);
  finite_(name_, *this);
  std::vector<StackLayer> layers;
  for (const Layer& layer : layers_) layers.push_back(stack_layer(layer, x));
  return run_layers(name_, layers, x, state, timing);
}

nn::Buffer ConvCellStackImpl::plan(nn::FramePlan& plan, const nn::Buffer& x) {
  finite_(name_, *this);
  nn::Buffer u = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    std::vector<nn::Buffer> states;
    for (size_t j = 0; j < state_names_.size(); ++j) {
      states.push_back(plan.state(state_key(i, state_names_[j]), options_.features, x.height, x.width));
    }
    const nn::Buffer v = plan_before(plan, options_.wrapper, layer.norm, u);
    u = plan_after(plan, options_.wrapper, layer.norm, u, layer.cell->plan(plan, v, states));
  }
  return u;
}

}  // namespace convssm::cores
