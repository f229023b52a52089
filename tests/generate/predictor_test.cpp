// The compiled model against the model itself: frame by frame, over long rollouts, with actions, states and batches.
#include "convssm/generate/predictor.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/generate/rollout.h"
#include "convssm/models/pixel/pixel_predictor.h"
#include "convssm/models/registry.h"
#include "convssm/nn/frame_plan.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::generate {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::randn;

struct Kind {
  json core;
  int64_t channels = 1, height = 12, width = 12;
  int64_t actions = 1, blocks = 1;
};

const json kConvS5 = {{"name", "convs5"}, {"features", 16}, {"state_size", 16}, {"layers", 2}, {"dt_max", 1.0}};

std::shared_ptr<models::Model> make(const Kind& kind) {
  const json coder = {{"depths", {8, 16, 24}}, {"groups", 8}, {"blocks", kind.blocks}};
  const auto model = models::make_model(
      {{"encoder", coder}, {"decoder", coder}, {"core", kind.core}, {"actions", kind.actions}, {"action_features", 3}},
      {kind.channels, kind.height, kind.width});
  torch::NoGradGuard no_grad;
  uint64_t seed = 50;
  for (auto& item : model->named_parameters()) {  // no zero bias, no weight of one
    if (item.key().ends_with("bias")) item.value().add_(randn(item.value().sizes(), ++seed).to(at::kFloat), 0.1);
    if (item.key().ends_with(".x0")) item.value().add_(randn(item.value().sizes(), ++seed).to(at::kFloat));
    const bool varied = item.key().find(".dynamics.") != std::string::npos || item.key().ends_with(".gate.weight");
    if (varied) item.value().add_(randn(item.value().sizes(), ++seed).to(at::kFloat), 0.02);
    if (item.key() == "decoder.last.weight") item.value().mul_(0.25);  // else rollouts are chaotic: any rounding grows
  }
  model->eval();
  return model;
}

at::Tensor clips(const Kind& kind, int64_t B, int64_t K, uint64_t seed = 1) {
  return randn({B, K, kind.channels, kind.height, kind.width}, seed).tanh().to(at::kFloat);
}

at::Tensor rollout(Predictor& predictor, int64_t frames) { return rollout(predictor, {}, frames); }

// The largest difference to Model::next over a rollout.
double difference(const Kind& kind, int64_t B, int64_t frames) {
  const auto model = make(kind);
  Predictor compiled(*model, {.batch = B}), plain(*model, {.batch = B, .compile = false});
  compiled.start({clips(kind, B, 4)});
  plain.start({clips(kind, B, 4)});
  return distance(rollout(compiled, frames), rollout(plain, frames));
}

TEST(Predictor, RolloutsOf200FramesAreThoseOfTheModel) {
  EXPECT_LT(difference({kConvS5}, 1, 200), 1e-4);
  EXPECT_LT(difference({kConvS5, 3, 10, 14, 0, 2}, 2, 200), 1e-4);  // padded, in colour, without actions
  EXPECT_LT(difference({{{"name", "convlstm"}, {"features", 16}, {"layers", 2}}}, 1, 200), 1e-4);
  EXPECT_LT(difference({{{"name", "convgru"}, {"features", 16}}, 2, 9, 11}, 1, 200), 1e-4);
  EXPECT_LT(difference({{{"name", "convrnn"}, {"features", 16}}, 2, 9, 11}, 1, 200), 1e-4);
}

TEST(Predictor, VariantsOfConvS5AreThoseOfTheModel) {
  const auto variant = [](const json& changes) {
    json core = kConvS5;
    core.update(changes);
    return Kind{core};
  };
  for (const char* block : {"sparse", "convnext", "s4nd"}) {
    EXPECT_LT(difference(variant({{"activation_block", block}}), 2, 100), 1e-4) << block;
  }
  EXPECT_LT(difference(variant({{"init", "lru"}, {"learned_state", true}}), 2, 100), 1e-4);
  for (const char* dynamics : {"selective", "gated", "liquid"}) {
    EXPECT_LT(difference(variant({{"dynamics", dynamics}, {"output_gate", "swish"}}), 2, 40), 1e-4) << dynamics;
  }
}

// Whether a context is one frame or many, after an earlier one or not: a sequence begins at the learned state.
TEST(Predictor, BeginsAtALearnedState) {
  json core = kConvS5;
  core["learned_state"] = true;
  const Kind kind{core};
  const auto model = make(kind);
  Predictor compiled(*model), plain(*model, {.compile = false});
  for (const int64_t frames : {1, 3, 1}) {
    compiled.start({clips(kind, 1, frames)});
    plain.start({clips(kind, 1, frames)});
    EXPECT_LT(distance(rollout(compiled, 5), rollout(plain, 5)), 1e-5) << frames;
  }
  Predictor taken(*model);  // a state of one frame, which waits, has no state of the core yet
  plain.start({clips(kind, 1, 1)});
  taken.start(plain.state());
  EXPECT_LT(distance(rollout(taken, 5), rollout(plain, 5)), 1e-5);
}

TEST(Predictor, CoresWithoutAPlanRunToo) {
  const json transformer = {{"name", "transformer"}, {"features", 16}, {"heads", 2}, {"out_features", 8}};
  for (const json& core : {transformer, json{{"name", "s5"}, {"features", 16}, {"state_size", 16}}}) {
    const Kind kind{core};
    const auto model = make(kind);
    Predictor predictor(*model, {.batch = 2});
    predictor.start({clips(kind, 2, 3)});
    torch::NoGradGuard no_grad;
    models::Forecaster& forecaster = *model->as_forecaster();
    models::State state = forecaster.start({clips(kind, 2, 3)}, {});
    for (int k = 0; k < 3; ++k) {
      models::Forecast out = forecaster.next(state, {});
      EXPECT_LT(distance(predictor.next(), out.frame), 1e-5);
      state = out.state;
    }
    expect_error([&] { Predictor(*model, {.precision = Precision::int8}); }, {"int8", "convs5"});
  }
}

TEST(Predictor, AStateGoesOnWithTrueFramesAsIfNothingHadHappened) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  const at::Tensor video = clips(kind, 1, 3);
  for (const bool compile : {true, false}) {
    Predictor whole(*model, {.compile = compile}), resumed(*model, {.compile = compile});
    whole.next(video.select(1, 0));
    resumed.start(whole.state());
    for (int64_t k = 1; k < 3; ++k) {
      at::Tensor forecast = whole.next(video.select(1, k));
      EXPECT_TRUE(at::equal(resumed.next(video.select(1, k)), forecast)) << compile << ", frame " << k;
      forecast.zero_();  // is the caller's own
    }
    EXPECT_TRUE(at::equal(resumed.next(), whole.next()));
    Predictor two(*model, {.batch = 2, .compile = compile});
    expect_error([&] { two.start(whole.state()); }, {"2 clips", "got 1"});
  }
}

TEST(Predictor, EveryTrueFrameGivesTheForecastOfTheNext) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  const at::Tensor video = clips(kind, 2, 6);
  torch::NoGradGuard no_grad;
  std::vector<at::Tensor> expected;  // after frames 0..k
  for (int64_t k = 0; k < 6; ++k) {
    expected.push_back(
        model->as_forecaster()->next(model->as_forecaster()->start({video.slice(1, 0, k + 1)}, {}), {}).frame);
  }
  for (const bool compile : {true, false}) {
    Predictor stream(*model, {.batch = 2, .compile = compile});
    for (int64_t k = 0; k < 6; ++k) EXPECT_LT(distance(stream.next(video.select(1, k)), expected[k]), 1e-5) << k;

    Predictor after(*model, {.batch = 2, .compile = compile});  // the last frame of the context goes in as well
    after.start({video.slice(1, 0, 3)});
    EXPECT_LT(distance(after.next(video.select(1, 3)), expected[3]), 1e-5);
    after.start({video.slice(1, 0, 5)});  // begins anew
    EXPECT_LT(distance(after.next(), expected[4]), 1e-5);
  }
}

TEST(Predictor, Actions) {
  const Kind kind{kConvS5, 1, 12, 12, 4};
  const auto model = make(kind);
  const at::Tensor video = clips(kind, 2, 3), actions = at::tensor({0, 3, -1, 2, 1, 1}, at::kLong).view({2, 3});
  const at::Tensor next = at::tensor({-1, 2}, at::kLong);
  torch::NoGradGuard no_grad;
  models::Forecaster& forecaster = *model->as_forecaster();
  const models::Forecast expected = forecaster.next(forecaster.start({video, actions}, {}), next);
  Predictor predictor(*model, {.batch = 2});
  predictor.start({video, actions});
  EXPECT_LT(distance(predictor.next_after(next), expected.frame), 1e-5);
  EXPECT_GT(distance(forecaster.next(forecaster.start({video}, {}), {}).frame, expected.frame), 1e-4)
      << "actions matter";
  expect_error([&] { predictor.next_after(at::tensor({0, 4}, at::kLong)); }, {"below model.actions = 4", "got 4"});
}

TEST(Predictor, ObservedFramesAreAContextThatGrows) {
  const Kind kind{kConvS5, 1, 12, 12, 4};
  const auto model = make(kind);
  const at::Tensor video = clips(kind, 2, 3), actions = at::tensor({0, 3, -1, 2, 1, 1}, at::kLong).view({2, 3});
  const at::Tensor next = at::tensor({1, 2}, at::kLong);
  for (const bool compile : {true, false}) {
    Predictor whole(*model, {.batch = 2, .compile = compile}), grown(*model, {.batch = 2, .compile = compile});
    whole.start({video, actions});
    for (int64_t k = 0; k < 3; ++k) grown.observe(video.select(1, k), actions.select(1, k));
    EXPECT_LT(distance(grown.next_after(next), whole.next_after(next)), 1e-5) << compile;
    expect_error([&] { grown.observe(video.select(1, 0).slice(0, 0, 1)); }, {"2 clips", "got 1"});
  }
}

TEST(Predictor, AStateGoesBetweenPredictorAndModel) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  torch::NoGradGuard no_grad;
  Predictor first(*model, {.batch = 2});
  first.start({clips(kind, 2, 3)});
  first.next();
  const models::State state = first.state();
  const at::Tensor expected = rollout(first, 3);
  EXPECT_LT(distance(model->as_forecaster()->next(state, {}).frame, expected.select(1, 0)), 1e-5);
  Predictor second(*model, {.batch = 2});
  second.start(state);
  EXPECT_TRUE(rollout(second, 3).equal(expected)) << "the same bits";
  second.start(state);  // a value: the rollout has not changed it
  EXPECT_TRUE(rollout(second, 3).equal(expected));
  expect_error([&] { Predictor(*model, {.batch = 1}).start(state); }, {"1 clips", "got 2"});
  expect_error([&] { second.start(models::State()); }, {"empty"});
}

TEST(Predictor, AStateOfOneFrameIsEnough) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  torch::NoGradGuard no_grad;
  models::Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor video = clips(kind, 1, 4);
  const models::State state = forecaster.start({video.slice(1, 0, 1)}, {});
  Predictor predictor(*model);
  ASSERT_TRUE(predictor.compiled());
  predictor.start({video});  // leaves states behind
  predictor.next();
  predictor.start(state);
  EXPECT_LT(distance(predictor.next(), forecaster.next(state, {}).frame), 1e-5);
}

TEST(Predictor, OnlyTheEagerEngineTakesTimes) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  data::Clips context{clips(kind, 1, 4)};
  Predictor plan(*model), eager(*model, {.compile = false});
  plan.start(context);
  eager.start(context);
  const at::Tensor plain = eager.next();
  for (const data::ClipTiming& timing :
       {data::ClipTiming{at::full({1, 4}, 2.0), {}, 1}, {{}, at::ones({1, 4}, at::kBool), 1}, {{}, {}, 0.5}}) {
    context.timing = timing;
    eager.start(context);
    expect_error([&] { plan.start(context); }, {"dt, resets and step_rescale", "eager"});
    expect_error([&] { plan.start(eager.state()); }, {"dt, resets and step_rescale", "eager"});
    EXPECT_LT(distance(eager.next(), model->as_forecaster()->forecasts(context, {}).select(1, 3)), 1e-5);
  }
}

TEST(Predictor, AContextWithoutFramesIsRefused) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  for (const bool compile : {true, false}) {
    Predictor predictor(*model, {.compile = compile});
    expect_error([&] { predictor.start({.codes = at::zeros({1, 3, 2, 2}, at::kLong)}); }, {"needs the video"});
    expect_error([&] { predictor.start({at::zeros({1, 3, 2, 12, 12})}); }, {"[B,T,1,12,12]", "[1,3,2,12,12]"});
  }
}

// Says that it compiles, and then has nothing for these options.
class Reluctant : public testing::DrawingModel {
 public:
  bool compiles() const override { return true; }
};

TEST(Predictor, AForecasterThatDoesNotCompileAfterAllRunsEager) {
  Reluctant model;
  Predictor predictor(model, {.batch = 2});
  EXPECT_FALSE(predictor.compiled());
  predictor.start({clips({}, 2, 3)}, {1, 2});
  EXPECT_EQ(predictor.next().size(0), 2);
  expect_error([&] { Predictor(model, {.precision = Precision::int8}); }, {"int8", "float32"});
}

TEST(Predictor, ABatchIsItsClips) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  const at::Tensor video = clips(kind, 3, 4);
  Predictor all(*model, {.batch = 3}), one(*model);
  all.start({video});
  const at::Tensor together = rollout(all, 20);
  for (int64_t i = 0; i < 3; ++i) {
    one.start({video.slice(0, i, i + 1)});
    EXPECT_LT(distance(rollout(one, 20)[0], together[i]), 1e-5) << i;
  }
}

TEST(Predictor, BadUse) {
  const Kind kind{kConvS5};
  const auto model = make(kind);
  Predictor predictor(*model, {.batch = 2});
  expect_error([&] { predictor.next(); }, {"start()"});
  expect_error([&] { predictor.start({clips(kind, 1, 3)}); }, {"2 clips", "got 1"});
  expect_error([&] { predictor.next(at::zeros({2, 1, 5, 5})); }, {"[B,T,1,12,12]", "[2,1,1,5,5]"});
  expect_error([&] { Predictor(*model, {.batch = 0}); }, {"batch", "0"});
  expect_error([&] { parse_precision("int4"); }, {"float32", "int8", "int4"});
}

double psnr(const at::Tensor& x, const at::Tensor& y) {
  return -10 * std::log10((x - y).square().mean().item<double>() / 4);
}

TEST(PredictorInt8, IsCloseToFloat32) {
  std::vector<json> cores{kConvS5, json{{"name", "convlstm"}, {"features", 16}}};
  for (const char* dynamics : {"selective", "gated", "liquid"}) {
    cores.push_back(kConvS5);
    cores.back().update({{"dynamics", dynamics}, {"output_gate", "swish"}, {"features", 32}, {"state_size", 64}});
  }
  for (const json& core : cores) {
    const Kind kind{core};
    const auto model = make(kind);
    const at::Tensor video = clips(kind, 2, 8);
    Predictor exact(*model, {.batch = 2}), fast(*model, {.batch = 2, .precision = Precision::int8});
    exact.start({video});
    fast.start({video});
    const at::Tensor expected = exact.next(), found = fast.next();
    EXPECT_GT(psnr(found, expected), 35);
    EXPECT_GT(distance(found, expected), 1e-6) << "not in integers";
    fast.start({video});
    EXPECT_TRUE(fast.next().equal(found)) << "a second start gives the same";
    Predictor later(*model, {.batch = 2, .precision = Precision::int8});
    later.start(exact.state());
    EXPECT_GT(psnr(later.next(), exact.next()), 35);
  }
}

// Minor page faults and memory from malloc over many frames: none.
TEST(FramePlanRun, AllocatesNothing) {
  const Kind kind{kConvS5, 1, 64, 64};
  const auto model = make(kind);
  torch::NoGradGuard no_grad;
  nn::FramePlan plan({.batch = 1});
  dynamic_cast<models::PixelPredictorImpl&>(*model).plan(plan);
  plan.finish();
  for (int k = 0; k < 3; ++k) plan.run();
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const auto faults_before = faults();
  const auto used_before = used();
  for (int k = 0; k < 50; ++k) plan.run();
  EXPECT_LE(faults() - faults_before, 2);  // a fresh array of one frame alone would be 16 in each of 50 runs
  EXPECT_LE(used(), used_before + 4096);
}

}  // namespace
}  // namespace convssm::generate
