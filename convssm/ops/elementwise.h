// Small functions shared by the operations with their own kernels.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <functional>
#include <initializer_list>

namespace convssm::ops {

// Whether an operation on these will be differentiated. Asked before Function::apply, which turns gradients off.
bool gradients_wanted(std::initializer_list<at::Tensor> inputs);

// Dense memory whose channels (axis 1) lie together: channels_last for frames, plain for [N,C].
at::Tensor channels_together(const at::Tensor& x);

// The gradients of plain(inputs) with respect to those inputs that need one, as a graph that can be differentiated
// again. Used by backward functions when a graph of the gradient is wanted.
torch::autograd::variable_list differentiable_gradients(
    const torch::autograd::variable_list& inputs, const at::Tensor& grad,
    const std::function<at::Tensor(const torch::autograd::variable_list&)>& plain);

}  // namespace convssm::ops
