// A state is checked against the input before a layer runs, since one of another size could broadcast silently.
#include "convssm/cores/layer_stack.h"

#include <ATen/ATen.h>

namespace convssm::cores {
namespace {

void check_input(const char* operation, const std::vector<StackLayer>& layers, const at::Tensor& x, const State& state,
                 const Timing& timing) {
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  ops::require(operation, known, "x must be float32 or float64, got {}", ops::dtype_text(x));
  ops::require_like(operation, "x", x, layers[0].module->parameters()[0]);
  size_t tensors = 0;
  for (const StackLayer& layer : layers) tensors += layer.states.size();
  ops::require(operation, state.empty() || state.items().size() == tensors,
               "the state must be empty or hold the states of all {} layers, {} in all, got {}", layers.size(), tensors,
               state.items().size());
  ssm::check_timing(operation, timing, x.size(0), x.size(1));
}

// The states that a layer goes on from; undefined ones at the start of a sequence.
nn::Tensors states_before(const char* operation, const StackLayer& layer, size_t i, const State& state,
                          const at::Tensor& x) {
  nn::Tensors states;
  for (const auto& [name, sizes] : layer.states) {
    const std::string key = state_key(i, name);
    states.push_back(state.get(key));
    if (!states.back().defined()) continue;
    ops::require_shape(operation, key.c_str(), states.back(), sizes);
    ops::require_like(operation, key.c_str(), states.back(), x);
  }
  return states;
}

}  // namespace

std::string state_key(size_t layer, const std::string& name) { return fmt::format("layers.{}.{}", layer, name); }

int64_t skip_source(bool skip_connections, size_t layer) {
  if (!skip_connections) return -1;
  return layer == 8 ? 3 : layer == 11 ? 6 : -1;
}

CoreOutput run_layers(const char* operation, const std::vector<StackLayer>& layers, const at::Tensor& x,
                      const State& state, const Timing& timing, bool skip_connections) {
  check_input(operation, layers, x, state, timing);
  at::Tensor u = x.flatten(0, 1);
  CoreOutput out;
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const int64_t source = skip_source(skip_connections, i);
    if (source >= 0) u = u + inputs[source];
    if (skip_connections) inputs.push_back(u);
    nn::Tensors in = states_before(operation, layers[i], i, state, x);
    in.insert(in.begin(), u);
    const auto run = [run = layers[i].run, L = x.size(0), timing](const nn::Tensors& given) {
      return run(given, L, timing);
    };
    const nn::Tensors done = nn::recompute({layers[i].module}, in, run);
    u = done[0];
    for (size_t j = 1; j < done.size(); ++j) out.state.set(state_key(i, layers[i].states[j - 1].name), done[j]);
  }
  out.y = u.view(x.sizes());
  return out;
}

}  // namespace convssm::cores
