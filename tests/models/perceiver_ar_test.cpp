// Perceiver AR against an independent NumPy computation without caches (tools/golden/make_perceiver_ar.py), its gradients, sizes,
// initial values and draws.
#include "convssm/models/perceiver_ar/perceiver_ar.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/nn/recompute.h"
#include "convssm/ssm/initializers.h"
#include "tests/models/perceiver_ar_golden.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::PerceiverGolden;

std::vector<int64_t> ends_of(const PerceiverGolden& golden, const std::string& prefix) {
  const at::Tensor ends = golden.read(prefix + "ends");
  return {ends.data_ptr<int64_t>(), ends.data_ptr<int64_t>() + ends.numel()};
}

void expect_losses(const PerceiverGolden& golden, const LossOutput& out, const std::string& prefix) {
  const double loss = golden.number(prefix + "loss");
  EXPECT_NEAR(out.loss.item<double>(), loss, 1e-12 * loss);
  ASSERT_EQ(out.parts.size(), 2u);
  for (const auto& [name, value] : out.parts) {
    EXPECT_NEAR(value.item<double>(), golden.number(prefix + name), 1e-11) << name;
  }
}

class GoldenPerceiver : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenPerceiver, LossAndItsParts) {
  const PerceiverGolden golden(GetParam());
  expect_losses(golden, golden.model->loss_of(golden.clips(), ends_of(golden, "")), "");
  expect_losses(golden, golden.model->loss_of(golden.clips(), ends_of(golden, "whole.")), "whole.");
  expect_losses(golden, golden.model->loss(golden.clips(), {}), "whole.");  // the last step of a training
  EXPECT_EQ(learned_count(*golden.model), golden.read("parameter_count").item<int64_t>());
  Clips first = data::frames_of(golden.clips(), 0, 1);
  EXPECT_NEAR(golden.model->loss(first, {}).loss.item<double>(), golden.number("short.loss"), 1e-11);
}

TEST_P(GoldenPerceiver, TheSameInFloat32) {
  const PerceiverGolden golden(GetParam());
  golden.model->to(at::kFloat);
  const double loss = golden.number("loss");
  EXPECT_NEAR(golden.model->loss_of(golden.clips(), ends_of(golden, "")).loss.item<double>(), loss, 2e-6 * loss);
}

TEST_P(GoldenPerceiver, GradientsAreThoseOfFiniteDifferences) {
  const PerceiverGolden golden(GetParam());
  const Clips clips = golden.clips();
  const auto loss = [&] { return golden.model->loss_of(clips, ends_of(golden, "")).loss; };
  loss().backward();
  for (auto& item : golden.model->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    testing::expect_gradient(item.key(), item.value(), item.value().grad(), [&] { return loss().item<double>(); });
  }
}

// The same gradients from less memory.
TEST_P(GoldenPerceiver, RecomputedGradientsAreTheSame) {
  const auto gradients = [](bool recompute) {
    const PerceiverGolden golden(GetParam(), {{"dropout", 0.2}});
    golden.model->train();
    const nn::RecomputeScope scope(recompute);
    golden.model->loss(golden.clips(), {"model", 0, 9, Stream(3)}).loss.backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& p : golden.model->parameters())
      if (p.requires_grad()) all.push_back(p.grad());
    return all;
  };
  const auto plain = gradients(false), again = gradients(true);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(again[i].equal(plain[i])) << i;
}

// With caches, against an oracle that has none.
TEST_P(GoldenPerceiver, AFutureIsDrawnCodeByCode) {
  const PerceiverGolden golden(GetParam());
  const int64_t K = golden.context();
  const Clips clips = golden.clips();
  const at::Tensor actions = golden.read("actions"), video = golden.frames_of(clips.codes);
  const at::Tensor expected = golden.frames_of(golden.read("rollout")), logits = golden.read("rollout_logits");
  State state = golden.model->start({video.slice(1, 0, K), actions.slice(1, 0, K)}, {});
  for (int64_t k = 0; k < expected.size(1); ++k) {
    const Forecast out = golden.model->next(state, actions.select(1, K + k));
    EXPECT_TRUE(out.frame.equal(expected.select(1, k))) << k;
    state = out.state;
  }
  EXPECT_LT(distance(at::stack(golden.model->logits, 1), logits), 1e-11);
}

TEST_P(GoldenPerceiver, ATrueFrameTakesThePlaceOfItsForecast) {
  const PerceiverGolden golden(GetParam());
  const int64_t K = golden.context();
  const at::Tensor actions = golden.read("actions"), video = golden.frames_of(golden.read("codes"));
  const at::Tensor expected = golden.frames_of(golden.read("corrected")), logits = golden.read("corrected_logits");
  State state = golden.model->start({video.slice(1, 0, K), actions.slice(1, 0, K)}, {});
  state = golden.model->next(state, actions.select(1, K)).state;
  state = golden.model->observe(state, video.select(1, K), {});
  golden.model->logits.clear();
  for (int64_t k = 0; k < expected.size(1); ++k) {
    const Forecast out = golden.model->next(state, actions.select(1, K + 1 + k));
    EXPECT_TRUE(out.frame.equal(expected.select(1, k))) << k;
    state = out.state;
  }
  EXPECT_LT(distance(at::stack(golden.model->logits, 1), logits), 1e-11);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenPerceiver, ::testing::Values("perceiver_ar_rotary", "perceiver_ar_axes"),
                         [](const auto& i) { return i.param; });

int64_t published_count(int64_t V, int64_t D, int64_t L) {
  return V * D + (D * D + D) + (1 + L) * (12 * D * D + 13 * D) + 4 * D + (D * V + V);
}

TEST(PerceiverAr, HasThePublishedSizes) {
  const ssm::WithoutValues without;
  for (const auto& [V, D, L, millions] :
       {std::tuple{1024, 512, 8, 29.7}, {1024, 1024, 12, 166.9}, {8192, 1280, 8, 199.7}}) {
    const nlohmann::json options = {{"name", "perceiver_ar"},
                                    {"codebook", {{"count", V}, {"height", 16}, {"width", 16}}},
                                    {"features", D},
                                    {"layers", L},
                                    {"heads", D / 64}};
    const int64_t count = learned_count(*make_model(options, {3, 64, 64}));
    EXPECT_EQ(count, published_count(V, D, L) + D) << "and the start token";
    EXPECT_NEAR(static_cast<double>(count) * 1e-6, millions, 0.06);
    nlohmann::json with_actions = options;
    with_actions["actions"] = 6;
    EXPECT_EQ(learned_count(*make_model(with_actions, {3, 64, 64})), count + 7 * D) << "and the masked one";
  }
}

nlohmann::json small_section() {
  return {{"name", "perceiver_ar"},
          {"codebook", {{"count", 9}, {"height", 4}, {"width", 4}}},
          {"features", 64},
          {"layers", 2},
          {"heads", 4},
          {"latents", 32},
          {"context", 64}};
}

TEST(PerceiverAr, BeginsWithoutAnOpinion) {
  const auto model = make_model(small_section(), {1, 16, 16});
  Clips clips;
  clips.codes = testing::some_codes({2, 3, 4, 4}, 9, 1);
  const LossOutput out = model->loss(clips, {});
  EXPECT_NEAR(testing::part_of(out, "nats_per_code").item<double>(), std::log(9.0), 1e-6);
  EXPECT_NEAR(out.loss.item<double>(), std::log(9.0) + 1e-4 * std::log(9.0) * std::log(9.0), 1e-6);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(testing::max_abs(parameters["network.logits.weight"]), 0);
  EXPECT_NEAR(parameters["network.tokens"].detach().std().item<double>(), 1, 0.06);
  EXPECT_NEAR(parameters["network.layer1.qkv.weight"].detach().std().item<double>(), 1 / 8.0, 0.005);
}

TEST(PerceiverAr, WindowsAndDropoutAreThoseOfTheStream) {
  const PerceiverGolden golden("perceiver_ar_rotary", {{"dropout", 0.1}});
  const auto loss = [&](uint64_t seed, int64_t step) {
    torch::NoGradGuard no_grad;
    return golden.model->loss(golden.clips(), {"model", step, 9, Stream(seed)}).loss.item<double>();
  };
  EXPECT_EQ(loss(1, 0), loss(1, 0));
  EXPECT_NE(loss(1, 0), loss(2, 0)) << "windows";
  EXPECT_EQ(loss(1, 8), loss(2, 8)) << "the last step has whole clips";
  golden.model->train();
  EXPECT_EQ(loss(1, 8), loss(1, 8));
  EXPECT_NE(loss(1, 8), loss(2, 8)) << "dropout";
}

TEST(PerceiverAr, DropoutKeepsTheMean) {
  const perceiver_ar::Dropout dropout{0.25, Stream(3)};
  const at::Tensor y = dropout(at::ones({200, 300}, at::kDouble));
  EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.01);
  EXPECT_FALSE(dropout.split("a")(y).equal(dropout.split("b")(y)));
}

// Every window has the same chance, and each clip one of its own.
TEST(PerceiverAr, WindowsEndAnywhereFromTheLatentsOn) {
  const PerceiverGolden golden("perceiver_ar_rotary");
  std::map<int64_t, int> found;
  const Clips clips = golden.clips();
  Clips one = data::frames_of(clips, 0, 2);  // 12 codes, 8 latents: five windows
  torch::NoGradGuard no_grad;
  std::map<double, int64_t> by_loss;
  for (int64_t e0 = 8; e0 <= 12; ++e0) {
    for (int64_t e1 = 8; e1 <= 12; ++e1)
      by_loss[golden.model->loss_of(one, {e0, e1}).loss.item<double>()] = 5 * e0 + e1;
  }
  ASSERT_EQ(by_loss.size(), 25u);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const double loss = golden.model->loss(one, {"model", 0, 9, Stream(seed)}).loss.item<double>();
    ASSERT_TRUE(by_loss.contains(loss));
    ++found[by_loss[loss]];
  }
  EXPECT_EQ(found.size(), 25u);
  for (const auto& [ends, times] : found) EXPECT_NEAR(times, 16, 16) << ends;
}

TEST(PerceiverAr, SeesWhatACacheWouldHold) {
  const perceiver_ar::Sight sight{20, 8};
  // A cache that is filled to 8, made anew with 4, and so on.
  int64_t first = 0;
  for (int64_t p = 0; p < 100; ++p) {
    if (p - first == 8) first = p - 4;
    EXPECT_EQ(sight.first_latent(p), first) << p;
    EXPECT_EQ(sight.first_input(first), std::max<int64_t>(first + 8 - 20, 0));
    EXPECT_LE(p - sight.first_input(first) + 1, 20);
  }
}

TEST(PerceiverAr, TheMostLikelyCodesAreKept) {
  const at::Tensor logits = at::tensor({0.5, 0.1, 0.3, 0.1, 0.97, 0.01, 0.01, 0.01}, at::kDouble).view({2, 4}).log();
  const auto kept = [&](int64_t k, double p) { return code_probabilities(logits, {1, k, p}); };
  EXPECT_LT(distance(kept(0, 1), logits.exp()), 1e-12);
  EXPECT_LT(distance(kept(0, 0.6)[0], at::tensor({0.625, 0.0, 0.375, 0.0}, at::kDouble)), 1e-12);
  EXPECT_LT(distance(kept(0, 0.5)[0], at::tensor({1.0, 0.0, 0.0, 0.0}, at::kDouble)), 1e-12);
  EXPECT_LT(distance(kept(0, 1e-9)[1], at::tensor({1.0, 0.0, 0.0, 0.0}, at::kDouble)), 1e-12);
  EXPECT_LT(distance(kept(2, 1)[0], at::tensor({0.625, 0.0, 0.375, 0.0}, at::kDouble)), 1e-12);
}

TEST(PerceiverAr, RefusesWhatItCannotDo) {
  const auto made = [](const nlohmann::json& more) {
    nlohmann::json options = small_section();
    options.update(more);
    return [options] { make_model(options, {1, 16, 16}); };
  };
  expect_error(made({{"latents", 31}}), {"latents must be even", "31"});
  expect_error(made({{"context", 16}}), {"context", "at least the 32 latents", "16"});
  expect_error(made({{"heads", 5}}), {"heads must divide", "5 heads", "64"});
  expect_error(made({{"rotary_fraction", 0}}), {"needs positions", "axes"});
  expect_error(made({{"rotary_fraction", 0.1}}), {"less than a pair"});
  expect_error(made({{"rotary_fraction", 2}}), {"[0,1]"});
  expect_error(made({{"dropout", 1}}), {"dropout", "[0,1)"});
  expect_error(made({{"log_sum_weight", -1}}), {"log_sum_weight"});
  expect_error(made({{"top_p", 0}}), {"top_p", "above 0"});
  expect_error(made({{"wavelenth", 3}}), {"wavelenth", "wavelength"});
  expect_error(made({{"tokenizer", {{"name", "vqgan"}}}}), {"either `tokenizer`", "both"});
  const auto model = make_model(small_section(), {1, 16, 16});
  EXPECT_EQ(model->as_forecaster(), nullptr) << "without a tokenizer there are no frames";
  expect_error([&] { model->check_data({{1, 8, 8}, {0, 0}, {}}); }, {"the data has frames"});
  Clips clips;
  clips.codes = testing::some_codes({1, 2, 4, 4}, 12, 1);
  expect_error([&] { model->loss(clips, {}); }, {"codes must be 0 to 8"});
  clips.codes = testing::some_codes({1, 2, 4, 3}, 9, 1);
  expect_error([&] { model->loss(clips, {}); }, {"[B,T,4,4]", "[1,2,4,3]"});
  clips.codes = testing::some_codes({1, 2, 4, 4}, 9, 1);
  clips.timing.dt = at::ones({1, 2});
  expect_error([&] { model->loss(clips, {}); }, {"knows no time"});
}

}  // namespace
}  // namespace convssm::models
