// What ConvS5 and S5 share as stacks of layers: reading and checking their options, the run through the layers.
#pragma once

#include <cmath>
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

// The state of layer i, `layers.<i>.x` [B,2P,...]; undefined at the start of a sequence.
at::Tensor layer_state(const char* operation, const State& state, const std::string& key, const at::Tensor& x,
                       int64_t states);

// With skip connections the input of layer 3 is added to that of layer 8, and of layer 6 to that of layer 11. -1: none.
int64_t skip_source(bool skip_connections, size_t layer);

// x [L,B,U,...] through all layers, each with its own state.
template <typename Layer>
CoreOutput run_layers(const char* operation, std::vector<Layer>& layers, const at::Tensor& x, const State& state,
                      const Timing& timing, bool skip_connections = false) {
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  ops::require(operation, known, "x must be float32 or float64, got {}", ops::dtype_text(x));
  ops::require_like(operation, "x", x, layers[0]->parameters()[0]);
  ops::require(operation, state.empty() || state.items().size() == layers.size(),
               "the state must be empty or hold one tensor per layer, {} in all, got {}", layers.size(),
               state.items().size());
  ssm::check_timing(operation, timing, x.size(0), x.size(1));
  at::Tensor u = x.flatten(0, 1);
  CoreOutput out;
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string key = "layers." + std::to_string(i) + ".x";
    const int64_t source = skip_source(skip_connections, i);
    if (source >= 0) u = u + inputs[source];
    if (skip_connections) inputs.push_back(u);
    const at::Tensor x0 = layer_state(operation, state, key, x, layers[i]->states());
    const auto run = [layer = layers[i], L = x.size(0), timing](const nn::Tensors& in) mutable {
      auto [y, last] = layer->forward(in[0], L, in[1], timing);
      return nn::Tensors{y, last};
    };
    const nn::Tensors done = nn::recompute({layers[i].get()}, {u, x0}, run);
    u = done[0];
    out.state.set(key, done[1]);
  }
  out.y = u.view(x.sizes());
  return out;
}

}  // namespace convssm::cores
