// The activations and their slopes in float64, straight from their definitions, for the tests of the kernels.
#pragma once

#include <array>
#include <cmath>

#include "convssm/ops/activation_kind.h"
#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {

inline constexpr std::array kActivations{Activation::identity, Activation::relu, Activation::gelu,
                                         Activation::swish,    Activation::elu,  Activation::quick_gelu,
                                         Activation::gelu_erf};

inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::swish:
      return x * sigmoid(x);
    case Activation::elu:
      return x > 0 ? x : std::expm1(x);
    case Activation::quick_gelu:
      return x * sigmoid(1.702 * x);
    case Activation::gelu_erf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::identity:
      break;
  }
  return x;
}

// By a central difference of fourth order; no x may be nearer to a kink than two steps.
inline double slope(Activation activation, double x) {
  constexpr double h = 1e-3;
  const auto at = [&](double steps) { return activated(activation, x + steps * h); };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
}

// Moves values away from zero, where relu and elu have no smooth slope.
template <typename T>
std::vector<T> away_from_zero(std::vector<T> values) {
  for (T& x : values) x += x < 0 ? T(-0.01) : T(0.01);
  return values;
}

}  // namespace convssm::ops::testing
