// channels_together says what memory layout the kernels take. differentiable_gradients runs the plain version under
// autograd inside a backward: the kernels' own backward has no graph, and a double backward needs one.
#include "convssm/ops/elementwise.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace convssm::ops {

bool gradients_wanted(std::initializer_list<at::Tensor> inputs) {
  const auto wants = [](const at::Tensor& x) { return x.requires_grad(); };
  return at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), wants);
}

at::Tensor channels_together(const at::Tensor& x) {
  return x.dim() == 4 ? x.contiguous(at::MemoryFormat::ChannelsLast) : x.contiguous();
}

torch::autograd::variable_list differentiable_gradients(
    const torch::autograd::variable_list& inputs, const at::Tensor& grad,
    const std::function<at::Tensor(const torch::autograd::variable_list&)>& plain) {
  torch::autograd::variable_list wanted, grads(inputs.size());
  for (const auto& input : inputs) {
    if (input.defined() && input.requires_grad()) wanted.push_back(input);
  }
  const auto found = torch::autograd::grad({plain(inputs)}, wanted, {grad}, true, true, true);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) grads[i] = found[next++];
  }
  return grads;
}

}  // namespace convssm::ops
