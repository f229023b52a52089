// Small VQ-GANs for the tests: with golden parameters, and of few.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "tests/models/vqgan_golden.h"
#include "tests/support.h"

namespace convssm::testing {

// With the golden parameters, of the type.
inline std::shared_ptr<models::Model> golden_vqgan(const VqGanGolden& golden, at::ScalarType type) {
  auto model = models::make_model(golden.model, {3, 16, 12});
  torch::NoGradGuard no_grad;
  const io::NamedTensors state = golden.state();
  size_t taken = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().starts_with("discriminator.")) {
      item.value().copy_(VqGanGolden::of_discriminator(item.key(), item.value()));
      continue;
    }
    for (const auto& [name, value] : state) {
      if ("autoencoder." + name == item.key()) item.value().copy_(value), ++taken;
    }
  }
  EXPECT_EQ(taken, state.size()) << "names are those of the public layout";
  model->to(type);
  return model;
}

inline nlohmann::json tiny_vqgan(const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json options = {{"name", "vqgan"},
                            {"features", 8},
                            {"multipliers", {1, 2}},
                            {"blocks", 1},
                            {"attention", {4}},
                            {"latent", 6},
                            {"groups", 4},
                            {"perceptual", "none"},
                            {"quantizer", {{"name", "ema"}, {"size", 12}, {"features", 5}}},
                            {"discriminator", {{"features", 4}, {"layers", 1}, {"start", 5}}}};
  options.update(more);
  return options;
}

inline at::Tensor noise_video(at::IntArrayRef shape, uint64_t seed) {
  return randn(shape, seed).clamp(-1, 1).to(at::kFloat);
}

}  // namespace convssm::testing
