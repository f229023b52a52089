// A function of autograd whose backward runs f again on detached leaves and differentiates that graph. Parameters are
// passed as inputs though f does not read them from there: only so does autograd ask for their gradients. They are not
// detached, so the second graph ends in the same tensors.
#include "convssm/nn/recompute.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/libtorch.h"

namespace convssm::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool active = false;

// Random numbers of a device from `states` on, until it ends.
class RandomScope {
 public:
  RandomScope(at::Device device, const Tensors& states) : device_(device), before_(ops::generator_states(device)) {
    ops::set_generator_states(device, states);
  }
  ~RandomScope() { ops::set_generator_states(device_, before_); }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  at::Device device_;
  Tensors before_;
};

// What a part needs to be run again, beside its inputs.
struct Part : torch::CustomClassHolder {
  std::function<Tensors(const Tensors&)> f;
  std::vector<bool> given;  // which inputs are defined
  at::Device device = at::kCPU;
  Tensors random;  // states of the generators before the first run

  Tensors run(const Tensors& defined) const {
    Tensors inputs(given.size());
    auto next = defined.begin();
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) inputs[i] = *next++;
    }
    return f(inputs);
  }
  size_t defined_count() const { return static_cast<size_t>(std::count(given.begin(), given.end(), true)); }
};

// Leaves of a graph of their own.
Tensors as_leaves(const variable_list& variables, size_t count) {
  Tensors leaves;
  for (size_t i = 0; i < count; ++i) {
    leaves.push_back(variables[i].detach().requires_grad_(variables[i].requires_grad()));
  }
  return leaves;
}

// `values`: the defined inputs, then the parameters, which f finds in its module.
struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static variable_list forward(AutogradContext* ctx, const c10::intrusive_ptr<Part>& part, at::TensorList values) {
    part->device = values[0].device();
    part->random = ops::generator_states(part->device);
    const RecomputeScope plain(false);
    variable_list outputs = part->run(values.slice(0, part->defined_count()).vec());
    ctx->set_materialize_grads(false);
    ctx->saved_data["part"] = c10::IValue::make_capsule(part);
    ctx->save_for_backward(values.vec());
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    ops::require("recompute", !at::GradMode::is_enabled(), "has no second derivative; set train.recompute to false");
    const variable_list saved = ctx->get_saved_variables();
    const auto part = c10::static_intrusive_pointer_cast<Part>(ctx->saved_data["part"].toCapsule());
    Tensors inputs = as_leaves(saved, part->defined_count());
    variable_list roots, seeds;
    at::AutoGradMode with_gradients(true);
    {
      const RandomScope random(part->device, part->random);
      const RecomputeScope plain(false);
      const Tensors outputs = part->run(inputs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!grads[i].defined() || !outputs[i].requires_grad()) continue;
        roots.push_back(outputs[i]);
        seeds.push_back(grads[i]);
      }
    }
    inputs.insert(inputs.end(), saved.begin() + static_cast<int64_t>(inputs.size()), saved.end());
    return gradients(roots, seeds, inputs);
  }

  // One for the part, then those of the inputs; undefined where there is none.
  static variable_list gradients(const variable_list& roots, const variable_list& seeds, const Tensors& inputs) {
    variable_list result(1 + inputs.size()), wanted;
    for (const at::Tensor& input : inputs) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    if (roots.empty() || wanted.empty()) return result;
    const variable_list found = torch::autograd::grad(roots, wanted, seeds, nullopt, false, true);
    auto next = found.begin();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) result[1 + i] = *next++;
    }
    return result;
  }
};

}  // namespace

Tensors recompute(const std::vector<const torch::nn::Module*>& owners, const Tensors& inputs,
                  const std::function<Tensors(const Tensors&)>& f) {
  if (!active || !at::GradMode::is_enabled()) return f(inputs);
  auto part = c10::make_intrusive<Part>();
  part->f = f;
  Tensors values;
  for (const at::Tensor& input : inputs) {
    part->given.push_back(input.defined());
    if (input.defined()) values.push_back(input);
  }
  for (const auto* owner : owners) {
    for (const at::Tensor& parameter : owner->parameters()) values.push_back(parameter);
  }
  return RecomputeFunction::apply(part, at::TensorList(values));
}

RecomputeScope::RecomputeScope(bool on) : before_(active) { active = on; }

RecomputeScope::~RecomputeScope() { active = before_; }

}  // namespace convssm::nn
