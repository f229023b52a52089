// Elementwise activations, alone or fused with the residual sum before them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

const char* name(Activation activation);
Activation parse_activation(const std::string& text);

// activation(x), any shape.
at::Tensor activate(const at::Tensor& x, Activation activation);

// activation(x + y), same shapes.
at::Tensor add_activate(const at::Tensor& x, const at::Tensor& y, Activation activation);

// The same in plain tensor operations: the reference, any device.
at::Tensor activate_plain(const at::Tensor& x, Activation activation);

}  // namespace convssm::ops
