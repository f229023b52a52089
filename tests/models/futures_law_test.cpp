// The law of futures: a future is a function of (parameters, context, actions, seed of that clip), whatever runs beside
// it, on however many threads, wherever it was stopped, saved and resumed. And the law of tokenizers.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

constexpr int64_t kFrames = 9;

at::Tensor contexts(int64_t clips) { return randn({clips, 3, 1, 5, 6}, 1).tanh().to(at::kFloat); }
at::Tensor actions(int64_t clips) { return at::arange(clips * kFrames).view({clips, kFrames}).remainder(3); }

// `frames` frames from a state.
at::Tensor run(Forecaster& forecaster, State& state, const at::Tensor& coming, int64_t first, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = first; k < first + frames; ++k) {
    Forecast out = forecaster.next(state, coming.select(1, k));
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor future(const at::Tensor& context, const at::Tensor& coming, const Seeds& seeds) {
  testing::DrawingModel model;
  State state = model.start({context}, seeds);
  return run(model, state, coming, 0, kFrames);
}

const Seeds kSeeds = {5, 1, 9, 1, 7, 0, 3};

TEST(LawOfFutures, AFutureIsTheSameAloneAndInABatchOfSeven) {
  const at::Tensor together = future(contexts(7), actions(7), kSeeds);
  for (int64_t i = 0; i < 7; ++i) {
    const at::Tensor alone =
        future(contexts(7).slice(0, i, i + 1), actions(7).slice(0, i, i + 1), {kSeeds[static_cast<size_t>(i)]});
    EXPECT_TRUE(alone[0].equal(together[i])) << i;
  }
}

TEST(LawOfFutures, ThreadsDoNotChangeIt) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = future(contexts(7), actions(7), kSeeds);
  at::set_num_threads(2);
  const at::Tensor two = future(contexts(7), actions(7), kSeeds);
  at::set_num_threads(before);
  EXPECT_TRUE(one.equal(two));
}

TEST(LawOfFutures, StoppedSavedAndResumedItGoesOnTheSame) {
  const at::Tensor whole = future(contexts(3), actions(3), {1, 2, 3});
  for (int64_t cut = 1; cut < kFrames; ++cut) {
    testing::DrawingModel model, other;
    State state = model.start({contexts(3)}, {1, 2, 3});
    const at::Tensor first = run(model, state, actions(3), 0, cut);
    State copy = state.clone();
    run(model, state, actions(3), cut, 1);  // a state is a value: what goes on from it does not change it
    EXPECT_TRUE(at::cat({first, run(other, copy, actions(3), cut, kFrames - cut)}, 1).equal(whole)) << cut;
  }
}

TEST(LawOfFutures, SeedsAndActionsAndContextsMatter) {
  const at::Tensor context = contexts(1), coming = actions(1);
  const at::Tensor first = future(context, coming, {1});
  EXPECT_TRUE(future(context, coming, {1}).equal(first));
  EXPECT_FALSE(future(context, coming, {2}).equal(first));
  EXPECT_FALSE(future(context, 2 - coming, {1}).equal(first));
  EXPECT_FALSE(future(-context, coming, {1}).equal(first));
  EXPECT_TRUE(future(context, coming, {}).equal(future(context, coming, {0})));
  testing::DrawingModel model;
  expect_error([&] { model.start({context}, {1, 2}); }, {"a seed for each of 1 clips", "2"});
}

TEST(LawOfFutures, DrawsHaveTheirDistribution) {
  at::Tensor position = first_position({1, 2, 3, 4}, 4);
  const at::Tensor probabilities = at::tensor({0.2, 0.5, 0.3}).expand({4, 5000, 3});
  const at::Tensor drawn = draw_category(position, probabilities);
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(drawn.eq(k).to(at::kDouble).mean().item<double>(), probabilities[0][0][k].item<double>(), 0.012) << k;
  }
  const at::Tensor normal = draw_normal(position, {5000});
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(normal.std().item<double>(), 1, 0.03);
  EXPECT_TRUE(position.select(1, 1).equal(at::full({4}, 2, at::kLong)));
}

TEST(LawOfFutures, WhatCannotBeIsNeverDrawn) {
  at::Tensor position = first_position({1, 2}, 2);
  const at::Tensor probabilities = at::tensor({0.f, 0.5f, 0.f, 0.3f, 0.f}).expand({2, 5000, 5});  // of sum 0.8
  const at::Tensor drawn = draw_category(position, probabilities);
  for (const int64_t k : {0, 2, 4}) EXPECT_FALSE(drawn.eq(k).any().item<bool>()) << k;
  EXPECT_NEAR(drawn.eq(1).to(at::kDouble).mean().item<double>(), 0.5 / 0.8, 0.02);
}

// The pixel model draws nothing; its batches may differ by the rounding of a product, and by no more.
TEST(LawOfFutures, ThePixelModelKeepsItButForRounding) {
  torch::NoGradGuard no_grad;
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const auto model = make_model({{"encoder", coder},
                                 {"decoder", coder},
                                 {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
                                 {"actions", 3}},
                                {1, 5, 6});
  model->to(at::kDouble);
  const at::Tensor seen = contexts(7).to(at::kDouble);
  Forecaster& forecaster = *model->as_forecaster();
  State state = forecaster.start({seen}, kSeeds);
  const at::Tensor together = run(forecaster, state, actions(7), 0, kFrames);
  for (int64_t i = 0; i < 7; ++i) {
    State own = forecaster.start({seen.slice(0, i, i + 1)}, {});
    EXPECT_LT(distance(run(forecaster, own, actions(7).slice(0, i, i + 1), 0, kFrames)[0], together[i]), 1e-9) << i;
  }
}

TEST(LawOfTokenizers, TheCodesOfAClipAreThoseOfItsChunks) {
  testing::PatchTokenizer tokenizer;
  const at::Tensor video = randn({2, 6, 1, 4, 4}, 3).tanh().to(at::kFloat), codes = tokenizer.encode(video);
  for (int64_t cut = 1; cut < 6; ++cut) {
    const at::Tensor parts =
        at::cat({tokenizer.encode(video.slice(1, 0, cut)), tokenizer.encode(video.slice(1, cut))}, 1);
    EXPECT_TRUE(parts.equal(codes)) << cut;
  }
  EXPECT_EQ(tokenizer.decode(codes).sizes(), video.sizes());
  EXPECT_TRUE(tokenizer.encode(tokenizer.decode(codes)).equal(codes));
}

TEST(FrozenParts, BelongToNobodyAndStayInEvalMode) {
  struct Outer : Model {
    Outer() {
      own = register_parameter("own", at::ones({1}));
      part = register_frozen("part", std::make_shared<testing::CountingModel>());
    }
    LossOutput loss(const Clips&, const LossContext&, const State&) override { return {own.sum(), {}, {}}; }
    std::string description() const override { return "outer"; }
    at::Tensor own;
    std::shared_ptr<testing::CountingModel> part;
  } model;
  ASSERT_EQ(model.players().size(), 1u);
  ASSERT_EQ(model.players()[0].parameters.size(), 1u);
  EXPECT_EQ(model.players()[0].parameters[0].first, "own");
  model.train();
  EXPECT_TRUE(model.is_training());
  EXPECT_FALSE(model.part->is_training());
  EXPECT_FALSE(model.part->parameters()[0].requires_grad());
  EXPECT_EQ(model.named_parameters().size(), 2u) << "stored with the model";
  expect_error([&] { forecaster_of(model); }, {"no forecasts", "outer"});
}

TEST(Registry, TakesModelsOfOthers) {
  register_model({"toy of a test", "", [](const nlohmann::json&, const data::FrameFormat&) {
                    return std::make_shared<testing::CountingModel>();
                  }});
  EXPECT_EQ(make_model({{"name", "toy of a test"}}, {1, 4, 4})->description(), "counting model");
  expect_error([] { register_model({"pixel", "", {}}); }, {"pixel", "already"});
}

}  // namespace
}  // namespace convssm::models
