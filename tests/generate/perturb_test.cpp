// Members of an ensemble: one is as it was, the others are near it, each a function of its own seed.
#include "convssm/generate/perturb.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../support.h"
#include "convssm/generate/predictor.h"
#include "convssm/models/registry.h"

namespace convssm::generate {
namespace {

std::shared_ptr<models::Model> tiny() {
  return models::make_model({{"encoder", {{"depths", {8}}, {"groups", 2}}},
                             {"decoder", {{"depths", {8}}, {"groups", 2}}},
                             {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 1}}}},
                            data::FrameFormat(1, 8, 8));
}

TEST(Perturb, MembersDifferByTheirSeedsAlone) {
  const auto model = tiny();
  at::manual_seed(3);
  const at::Tensor context = at::rand({1, 5, 1, 8, 8}) * 2 - 1;
  const auto futures = [&](const std::vector<double>& sizes, const models::Seeds& seeds) {
    const int64_t members = std::ssize(sizes);
    Predictor predictor(*model, {.batch = members});
    predictor.start({.video = context.repeat({members, 1, 1, 1, 1})}, seeds);
    predictor.start(perturbed(predictor.state(), sizes, seeds));
    return predictor.next_frames({}, 3);
  };
  const at::Tensor three = futures({0, 0.1, 0.1}, {1, 2, 3}), plain = futures({0}, {1}), second = futures({0.1}, {3});
  EXPECT_TRUE(three[0].allclose(plain[0], 0, 1e-5));
  EXPECT_TRUE(three[2].allclose(second[0], 0, 1e-5)) << "whatever is beside it";
  const double apart = (three[1] - three[2]).abs().max().item<double>();
  EXPECT_GT(apart, 1e-4);
  EXPECT_LT(apart, 1);
  EXPECT_FALSE(three[0].allclose(three[1], 0, 1e-5));
}

TEST(Perturb, ANoiseOfATenthIsATenthOfWhatIsRemembered) {
  models::State state;
  state.set("core.x", at::full({2, 64, 8, 8}, 3.0));
  state.set("frame", at::ones({2, 1, 8, 8}));
  const models::State changed = perturbed(state, {0.1, 0.2}, {1, 1});
  EXPECT_TRUE(changed.get("frame").equal(state.get("frame")));
  const at::Tensor noise = changed.get("core.x") - 3.0;
  EXPECT_NEAR(noise[0].std().item<double>(), 0.3, 0.02);
  EXPECT_NEAR(noise[1].std().item<double>(), 0.6, 0.04);
  EXPECT_NEAR(noise[0].mean().item<double>(), 0, 0.02);
}

TEST(Perturb, WithoutAMemoryThereIsNothingToPerturb) {
  models::State state;
  state.set("frame", at::ones({1, 1, 8, 8}));
  testing::expect_error([&] { perturbed(state, {0.1}, {1}); }, {"keeps no state"});
  EXPECT_NO_THROW(perturbed(state, {0}, {1}));
}

}  // namespace
}  // namespace convssm::generate
