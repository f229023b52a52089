// Models of a small maze with random parameters, on pixels and on codes that are drawn, and what the library's own rollout
// of them is.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "convssm/generate/rollout.h"
#include "convssm/models/registry.h"
#include "convssm/serve/scene.h"
#include "tests/support.h"

namespace convssm::testing {

inline constexpr int64_t kSceneSide = 16, kSceneContext = 4;

inline std::shared_ptr<models::Model> tiny_world_model(bool codes) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  nlohmann::json section = {{"actions", 6},
                            {"encoder", coder},
                            {"decoder", coder},
                            {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}}}};
  if (codes) {
    section["name"] = "codes";
    section["encoder"]["blocks"] = section["decoder"]["blocks"] = 1;
    section["tokenizer"] = {{"name", "vqgan"},
                            {"features", 8},
                            {"multipliers", {1, 2}},
                            {"blocks", 1},
                            {"attention", nlohmann::json::array()},
                            {"latent", 6},
                            {"groups", 4},
                            {"perceptual", "none"},
                            {"quantizer", {{"name", "ema"}, {"size", 12}, {"features", 5}}},
                            {"discriminator", {{"features", 4}, {"layers", 1}}},
                            {"frames", {{"channels", 3}, {"height", kSceneSide}, {"width", kSceneSide}}}};
  }
  auto model = models::make_model(section, {3, kSceneSide, kSceneSide});
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& item : model->named_parameters()) {  // so that frames differ
    item.value().add_(0.1 * randn(item.value().sizes(), ++seed).to(at::kFloat));
  }
  model->eval();
  return model;
}

inline std::unique_ptr<serve::Beginnings> tiny_mazes() {
  const auto worlds = worlds::make_worlds({{"name", "maze"}, {"size", 4}, {"image_size", kSceneSide}}, 1);
  return serve::beginnings_in("maze", worlds, kSceneContext);
}

struct TinyScene {
  explicit TinyScene(bool codes) : model(tiny_world_model(codes)), scene(*model, tiny_mazes()) {}
  std::shared_ptr<models::Model> model;
  serve::Scene scene;
};

// A walk of whole numbers that turns and goes on.
inline int64_t some_action(int64_t step) { return (step * step + 1) % 6; }

// The states after 0, 1, ... steps of a rollout by the library from the beginning `world`, each taken from a predictor of its own
// that ran without a stop.
class LibraryWalk {
 public:
  LibraryWalk(models::Model& model, int64_t world, uint64_t seed) : model_(model), predictor_(model) {
    predictor_.start(tiny_mazes()->at(world).context, {seed});
  }
  explicit LibraryWalk(models::Model& model, const models::State& state) : model_(model), predictor_(model) {
    predictor_.start(state);
  }

  // The last of these frames [C,H,W].
  at::Tensor walk(const std::vector<int64_t>& actions) {
    const auto frames = static_cast<int64_t>(actions.size());
    return generate::rollout(predictor_, at::tensor(actions).unsqueeze(0), frames)[0][frames - 1];
  }
  models::State state() const { return predictor_.state(); }

  // As a branch of this walk goes on.
  LibraryWalk branch(uint64_t seed) const {
    return LibraryWalk(model_, models::forecaster_of(model_).reseeded(state(), {seed}));
  }

 private:
  models::Model& model_;
  generate::Predictor predictor_;
};

inline std::vector<int64_t> some_actions(int64_t first, int64_t end) {
  std::vector<int64_t> all;
  for (int64_t k = first; k < end; ++k) all.push_back(some_action(k));
  return all;
}

// Bit for bit.
inline void expect_same_state(const models::State& found, const models::State& expected) {
  ASSERT_EQ(found.items().size(), expected.items().size());
  for (const auto& [name, value] : expected.items()) EXPECT_TRUE(found.get(name).equal(value)) << name;
}

}  // namespace convssm::testing
