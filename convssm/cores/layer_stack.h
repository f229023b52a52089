// What stacks of layers share: the run through the layers with their states, and of ConvS5 and S5 the options.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/cores/core.h"
#include "convssm/cores/layer_wrapper.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"

namespace convssm::cores {

template <typename Options>
void check_stack_options(const char* operation, const Options& o) {
  ops::require(operation, o.features > 0, "features must be positive, got {}", o.features);
  ops::require(operation, o.state_size > 0, "state_size must be positive, got {}", o.state_size);
  require_between(operation, "layers", o.layers, 1, most_layers);
  ops::require(operation, o.dt_min > 0 && o.dt_max >= o.dt_min && std::isfinite(o.dt_max),
               "expected 0 < dt_min <= dt_max, got {} and {}", o.dt_min, o.dt_max);
  check(operation, o.wrapper);
}

template <typename Options>
void read_stack_options(OptionReader& read, Options& o) {
  read("features", o.features);
  read("state_size", o.state_size);
  read("layers", o.layers);
  read("blocks", o.blocks);
  read("clip_eigs", o.clip_eigs);
  read("dt_min", o.dt_min);
  read("dt_max", o.dt_max);
  read("discretization", [&](const std::string& text) { o.discretization = ssm::parse_discretization(text); });
  read("seed", o.seed);
  read_wrapper_options(read, o.wrapper);
}

// A layer as run_layers runs it on one x.
struct StackLayer {
  struct StateShape {
    std::string name;            // `x`: in the State of layer i it is `layers.<i>.x`
    std::vector<int64_t> sizes;  // that it has if it is given
  };
  const torch::nn::Module* module;
  std::vector<StateShape> states;
  // u [L*B,U,...] and the states, undefined at the start of a sequence -> the output like u and the states after it. May be
  // called again in the backward: captures by value.
  std::function<nn::Tensors(const nn::Tensors& in, int64_t L, const Timing& timing)> run;
};

// A layer with one state `x` of P complex numbers, x [L,B,U,...].
template <typename Layer>
StackLayer ssm_layer(const Layer& layer, const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().slice(1).vec();
  sizes[1] = 2 * layer->states();
  const auto run = [layer = layer](const nn::Tensors& in, int64_t L, const Timing& timing) mutable {
    auto [y, last] = layer->forward(in[0], L, in[1], timing);
    return nn::Tensors{y, last};
  };
  return {layer.get(), {{"x", sizes}}, run};
}

template <typename Layer>
std::vector<StackLayer> ssm_layers(const std::vector<Layer>& layers, const at::Tensor& x) {
  std::vector<StackLayer> all;
  for (const Layer& layer : layers) all.push_back(ssm_layer(layer, x));
  return all;
}

// The name of a state of layer i, `layers.<i>.<name>`.
std::string state_key(size_t layer, const std::string& name);

// With skip connections the input of layer 3 is added to that of layer 8, and of layer 6 to that of layer 11. -1: none.
int64_t skip_source(bool skip_connections, size_t layer);

// x [L,B,U,...] through all layers, each with its own states. A layer is one unit of recompute(); states go in and out of
// it as tensors, so that their gradients survive.
CoreOutput run_layers(const char* operation, const std::vector<StackLayer>& layers, const at::Tensor& x,
                      const State& state, const Timing& timing, bool skip_connections = false);

}  // namespace convssm::cores
