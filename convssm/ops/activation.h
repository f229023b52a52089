// Elementwise activations, alone or fused with the residual sum before them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace convssm::ops {

enum class Activation {
  identity,
  relu,
  gelu,   // tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  swish,  // x sigmoid(x)
  elu,    // x for x > 0, exp(x) - 1 below
};

const char* name(Activation activation);
Activation parse_activation(const std::string& text);

// activation(x), any shape.
at::Tensor activate(const at::Tensor& x, Activation activation);

// activation(x + y), same shapes.
at::Tensor add_activate(const at::Tensor& x, const at::Tensor& y, Activation activation);

// The same in plain tensor operations: the reference, any device.
at::Tensor activate_plain(const at::Tensor& x, Activation activation);

}  // namespace convssm::ops
