// The activations, apart from their functions: kernels see this header and no tensor.
#pragma once

namespace convssm::ops {

enum class Activation {
  identity,
  relu,
  gelu,        // tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  swish,       // x sigmoid(x)
  elu,         // x for x > 0, exp(x) - 1 below
  quick_gelu,  // x sigmoid(1.702 x)
  gelu_erf,    // 0.5 x (1 + erf(x / sqrt(2))), of which gelu is an approximation
};

}  // namespace convssm::ops
