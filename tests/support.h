// What the tests of tensors share: random tensors, differences, error texts, finite differences.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/random.h"

namespace convssm::testing {

// float64, standard normal, a function of shape and seed.
inline at::Tensor randn(at::IntArrayRef shape, uint64_t seed) {
  Stream stream(seed, "test");
  auto x = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = stream.normal();
  return x;
}

inline double max_abs(const at::Tensor& x) { return at::abs(x).max().item<double>(); }

// The largest difference; infinity if the shapes differ.
inline double distance(const at::Tensor& x, const at::Tensor& y) {
  return x.sizes() == y.sizes() ? max_abs(x - y) : std::numeric_limits<double>::infinity();
}

// The text of the Error that `action` throws, "" if it throws none.
inline std::string error_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// `action` throws an Error whose text holds all the parts.
inline void expect_error(const std::function<void()>& action, const std::vector<std::string>& parts) {
  const std::string text = error_text(action);
  EXPECT_FALSE(text.empty()) << "no error; expected one with " << parts[0];
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' not in: " << text;
}

// d f / d x by central differences of fourth order, f a function of what `x` holds.
inline at::Tensor finite_difference(const std::function<double()>& f, at::Tensor x, double h = 1e-3) {
  torch::NoGradGuard no_grad;
  auto gradient = at::zeros(x.sizes(), x.options());
  auto values = x.view({-1});
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double centre = values[i].item<double>();
    const auto at = [&](double offset) {
      values[i].fill_(centre + offset);
      return f();
    };
    gradient.view({-1})[i] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    values[i].fill_(centre);
  }
  return gradient;
}

// The largest difference between autograd and finite differences over all inputs, relative to the largest gradient of
// each.
inline double gradient_error(const std::function<at::Tensor()>& loss, const std::vector<at::Tensor>& inputs) {
  for (auto input : inputs) input.requires_grad_(true);
  const auto gradients = torch::autograd::grad({loss()}, inputs);
  double worst = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto numeric = finite_difference([&] { return loss().item<double>(); }, inputs[i].detach());
    worst = std::max(worst, distance(gradients[i], numeric) / std::max(1e-3, max_abs(numeric)));
  }
  return worst;
}

}  // namespace convssm::testing
