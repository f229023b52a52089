// The building blocks of networks in plain tensor operations of any dtype, from their definitions: what the tests of nn/
// compare with. They use nothing of ops/ but the names of the activations.
#pragma once

#include <torch/torch.h>

#include "convssm/ops/activation_kind.h"
#include "tests/support.h"

namespace convssm::nn::testing {

using convssm::testing::distance;
using convssm::testing::error_text;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::max_abs;
using convssm::testing::randn;

inline at::Tensor activated(const at::Tensor& x, ops::Activation activation) {
  switch (activation) {
    case ops::Activation::relu:
      return at::relu(x);
    case ops::Activation::gelu:
      return 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
    case ops::Activation::swish:
      return x * at::sigmoid(x);
    case ops::Activation::elu:
      return at::where(x > 0, x, at::expm1(x));
    case ops::Activation::quick_gelu:
      return x * at::sigmoid(1.702 * x);
    case ops::Activation::gelu_erf:
      return 0.5 * x * (1 + at::erf(x / std::sqrt(2.0)));
    case ops::Activation::identity:
      break;
  }
  return x;
}

// A vector of channels for x [N,C,...].
inline at::Tensor per_channel(const at::Tensor& values, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = values.size(0);
  return values.view(shape);
}

inline at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor rows = x.reshape({x.size(0), groups, -1});
  const at::Tensor centred = rows - rows.mean(-1, true);
  const at::Tensor normal = centred / at::sqrt(centred.square().mean(-1, true) + 1e-6);
  return normal.view(x.sizes()) * per_channel(weight, x) + per_channel(bias, x);
}

inline at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = x - x.mean(1, true);
  const at::Tensor normal = centred / at::sqrt(centred.square().mean(1, true) + 1e-6);
  return normal * per_channel(weight, x) + per_channel(bias, x);
}

// weight [O,C] over the channels of x [N,C,...].
inline at::Tensor dense(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::tensordot(weight, x, {1}, {1}).transpose(0, 1) + per_channel(bias, x);
}

// A sum over the taps of shifted frames; the longer side of an even kernel's padding is at the end.
inline at::Tensor conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t k = weight.size(2), before = (k - 1) / 2, after = k - 1 - before, H = x.size(2), W = x.size(3);
  const at::Tensor padded = at::constant_pad_nd(x, {before, after, before, after});
  at::Tensor y = at::zeros({x.size(0), weight.size(0), H, W}, x.options());
  for (int64_t tap = 0; tap < k * k; ++tap) {
    const at::Tensor shifted = padded.narrow(2, tap / k, H).narrow(3, tap % k, W);
    y = y + at::tensordot(weight.select(2, tap / k).select(2, tap % k), shifted, {1}, {1}).transpose(0, 1);
  }
  return bias.defined() ? y + per_channel(bias, y) : y;
}

// Norms with weight one and convolutions without bias would hide mistakes.
inline void scatter(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (auto& item : module.named_parameters()) {
    item.value().add_(randn(item.value().sizes(), ++seed).to(item.value().scalar_type()), 0.2);
  }
}

// The parameters of a module by name, "" for one that it does not have: for writing formulas down.
class Parameters {
 public:
  explicit Parameters(const torch::nn::Module& module) : named_(module.named_parameters()) {}
  at::Tensor operator()(const std::string& name) const {
    const at::Tensor* found = named_.find(name);
    return found == nullptr ? at::Tensor() : *found;
  }

 private:
  torch::OrderedDict<std::string, at::Tensor> named_;
};

}  // namespace convssm::nn::testing
