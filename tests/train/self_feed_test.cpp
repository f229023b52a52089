// Own forecasts as inputs: what is replaced, by what, and that enough passes are a rollout.
#include "convssm/train/self_feed.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convssm/generate/rollout.h"
#include "convssm/models/registry.h"
#include "convssm/train/gradients.h"
#include "tests/models/field_model.h"
#include "tests/models/tiny_vqgan.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::distance;
using testing::randn;

std::shared_ptr<models::Model> make() {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const nlohmann::json core = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}};
  return models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}, {"actions", 3}}, {1, 8, 8});
}

const at::Tensor kVideo = randn({2, 9, 1, 8, 8}, 1).to(at::kFloat).tanh();
const at::Tensor kActions = at::arange(18, at::kLong).view({2, 9}).remainder(4) - 1;

TEST(SelfFeed, WithEveryFrameReplacedEnoughPassesAreARollout) {
  const auto model = make();
  model->to(at::kDouble);
  const at::Tensor video = kVideo.to(at::kDouble);
  const at::Tensor inputs = self_fed(*model->as_forecaster(), {video, kActions}, 1, 8, Stream(1)).inputs;
  at::NoGradGuard no_grad;
  generate::Predictor predictor(*model, {.batch = 2, .compile = false});
  predictor.start({video.slice(1, 0, 1), kActions.slice(1, 0, 1)});
  const at::Tensor alone = generate::rollout(predictor, kActions.slice(1, 1), 8);
  EXPECT_TRUE(at::equal(inputs.slice(1, 0, 1), video.slice(1, 0, 1)));
  EXPECT_LT(distance(inputs.slice(1, 1), alone), 1e-9);
  EXPECT_GT(distance(inputs.slice(1, 1), video.slice(1, 1)), 0.1);
}

// Of fields: what was never measured before the forecasts is the filler in them too.
TEST(SelfFeed, OfFieldsIsARolloutToo) {
  const auto model = testing::field_model();
  model->to(at::kDouble);
  const data::Clips clips = testing::field_clips(2, 7);
  const data::Clips fed = self_fed(*model->as_forecaster(), clips, 1, 6, Stream(1));
  EXPECT_TRUE(fed.inputs_valid.select(1, 5).equal(clips.valid.select(1, 0))) << "as only the first frame was seen";
  at::NoGradGuard no_grad;
  generate::Predictor predictor(*model, {.batch = 2, .compile = false});
  predictor.start(data::frames_of(clips, 0, 1));
  const at::Tensor alone = generate::rollout(predictor, clips.actions.slice(1, 1), 6);
  EXPECT_LT(distance(fed.inputs.slice(1, 1), alone), 1e-9);
  const double l = model->loss(fed, {}).loss.item<double>();
  EXPECT_NE(l, model->loss(clips, {}).loss.item<double>());
  data::Clips some = self_fed(*model->as_forecaster(), clips, 0.5, 1, Stream(1));
  for (int64_t b = 0; b < 2; ++b) {
    at::Tensor ever = at::zeros_like(clips.valid[0][0]);
    for (int64_t t = 0; t < 7; ++t) {
      const bool own = !some.inputs[b][t].equal(clips.video[b][t]);
      EXPECT_TRUE(some.inputs_valid[b][t].equal(own ? ever : clips.valid[b][t])) << b << t;
      if (!own) ever = ever.logical_or(clips.valid[b][t]);
    }
  }
}

TEST(SelfFeed, OnePassPutsInForecastsFromTrueFrames) {
  const auto model = make();
  const at::Tensor next = model->as_forecaster()->forecasts({kVideo.slice(1, 0, 8)}, kActions.slice(1, 1));
  const at::Tensor inputs = self_fed(*model->as_forecaster(), {kVideo, kActions}, 0.5, 1, Stream(1)).inputs;
  int64_t replaced = 0;
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(at::equal(inputs[b][0], kVideo[b][0]));
    for (int64_t t = 1; t < 9; ++t) {
      const bool own = !at::equal(inputs[b][t], kVideo[b][t]);
      replaced += own;
      EXPECT_TRUE(at::equal(inputs[b][t], own ? next[b][t - 1] : kVideo[b][t])) << b << ", " << t;
    }
  }
  EXPECT_GT(replaced, 2);
  EXPECT_LT(replaced, 14);
}

// Of clips of codes go in the most likely ones: with enough passes those of a rollout that takes them.
TEST(SelfFeed, OfCodesWithEveryFrameReplacedEnoughPassesAreARollout) {
  nlohmann::json tokenizer = testing::tiny_vqgan({{"discriminator", {{"weight", 0}}}});
  tokenizer["frames"] = {{"channels", 1}, {"height", 8}, {"width", 8}, {"low", 0}, {"high", 255}};
  const nlohmann::json core = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}};
  const auto model = models::make_model({{"name", "codes"},
                                         {"tokenizer", tokenizer},
                                         {"encoder", {{"depths", {8}}}},
                                         {"decoder", {{"depths", {8}}}},
                                         {"core", core},
                                         {"actions", 3},
                                         {"top_k", 1}},
                                        {1, 8, 8});
  model->to(at::kDouble);
  const at::Tensor codes = at::arange(2 * 9 * 16, at::kLong).view({2, 9, 4, 4}).square().remainder(11);
  data::Clips clips;
  clips.codes = codes, clips.actions = kActions;
  models::Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor inputs = self_fed(forecaster, clips, 1, 8, Stream(1)).inputs;
  ASSERT_EQ(inputs.sizes(), codes.sizes());
  EXPECT_TRUE(at::equal(inputs.slice(1, 0, 1), codes.slice(1, 0, 1)));
  models::State state = forecaster.start(data::frames_of(clips, 0, 1), {});
  for (int64_t t = 1; t < 9; ++t) {
    state = forecaster.next(state, kActions.select(1, t)).state;
    EXPECT_TRUE(at::equal(inputs.select(1, t), state.get("codes"))) << t;
  }
  EXPECT_FALSE(at::equal(inputs, codes));

  data::Clips longer;  // than goes through the core at once
  longer.codes = at::arange(2 * 37 * 16, at::kLong).view({2, 37, 4, 4}).square().remainder(11);
  longer.actions = at::arange(2 * 37).view({2, 37}).remainder(3);
  const at::Tensor likely = forecaster.forecasts(data::frames_of(longer, 0, 36), longer.actions.slice(1, 1));
  for (const int64_t t : {int64_t{1}, int64_t{16}, int64_t{17}, int64_t{36}}) {
    state = forecaster.next(forecaster.start(data::frames_of(longer, 0, t), {}), longer.actions.select(1, t)).state;
    EXPECT_TRUE(at::equal(likely.select(1, t - 1), state.get("codes"))) << t;
  }
  const auto loss = [&] { return model->loss(clips, {}).loss.item<double>(); };
  const double plain = loss();
  clips.inputs = codes;
  EXPECT_EQ(loss(), plain);
  clips.inputs = inputs;
  EXPECT_NE(loss(), plain);
}

TEST(SelfFeed, DrawsFromItsStreamAlone) {
  const auto model = make();
  const auto inputs = [&](uint64_t seed, double p) {
    return self_fed(*model->as_forecaster(), {kVideo}, p, 2, Stream(seed)).inputs;
  };
  EXPECT_TRUE(at::equal(inputs(1, 0.5), inputs(1, 0.5)));
  EXPECT_FALSE(at::equal(inputs(1, 0.5), inputs(2, 0.5)));
  EXPECT_TRUE(at::equal(inputs(1, 0), kVideo));
}

// Other inputs change the loss; the frames to be predicted stay. In chunks the gradients are those of the whole clip.
TEST(SelfFeed, GradientsAreThoseOfTheInputs) {
  const auto model = make();
  model->to(at::kDouble);
  const at::Tensor video = kVideo.to(at::kDouble), inputs = randn(kVideo.sizes().vec(), 5).tanh();
  const auto gradients = [&](const at::Tensor& given, int64_t chunk, double& loss) {
    for (const at::Tensor& p : model->parameters()) p.mutable_grad() = at::Tensor();
    loss = add_gradients(*model, {video, kActions, given}, {}, chunk).loss;
    std::vector<at::Tensor> copies;
    for (const at::Tensor& p : model->parameters()) copies.push_back(p.grad().clone());
    return copies;
  };
  double plain = 0, same = 0, other = 0, chunks = 0;
  gradients({}, 0, plain), gradients(video, 0, same);
  const auto whole = gradients(inputs, 0, other), parts = gradients(inputs, 3, chunks);
  EXPECT_EQ(plain, same);
  EXPECT_GT(std::abs(other - plain), 1e-3);
  EXPECT_NEAR(other, chunks, 1e-9);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_LT(distance(whole[i], parts[i]), 1e-7) << i;
  at::NoGradGuard no_grad;
  const at::Tensor next = model->as_forecaster()->forecasts({inputs.slice(1, 0, 8)}, kActions.slice(1, 1));
  const at::Tensor difference = next - video.slice(1, 1);
  const double squared = at::mean(difference * difference).item<double>() * 8;
  const double absolute = at::mean(at::abs(difference)).item<double>() * 8;
  EXPECT_NEAR(other, 0.5 * squared + 0.5 * absolute, 1e-9);
}

TEST(SelfFeed, GrowsOverTheFirstHalf) {
  EXPECT_EQ(self_feed_at(0.8, 0, 100), 0);
  EXPECT_DOUBLE_EQ(self_feed_at(0.8, 25, 100), 0.4);
  EXPECT_DOUBLE_EQ(self_feed_at(0.8, 50, 100), 0.8);
  EXPECT_DOUBLE_EQ(self_feed_at(0.8, 99, 100), 0.8);
}

}  // namespace
}  // namespace convssm::train
