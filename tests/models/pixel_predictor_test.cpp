// The pixel predictor against an independent NumPy computation (tools/golden/make_pixel.py), and its laws.
#include "convssm/models/pixel/pixel_predictor.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "tests/models/golden_parameters.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

const std::filesystem::path kFolder = std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden";

struct Golden {
  io::NpzFile file;
  nlohmann::json config;
  std::shared_ptr<Model> model;

  explicit Golden(const std::string& name) : file((kFolder / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    config = nlohmann::json::parse(bytes.begin(), bytes.end());
    const nlohmann::json coder = {{"depths", config["depths"]}, {"blocks", config["blocks"]}};
    const nlohmann::json options = {{"encoder", coder},
                                    {"decoder", coder},
                                    {"core", config["core"]},
                                    {"actions", config["actions"]},
                                    {"action_features", config["action_features"]},
                                    {"action_maps", config.value("action_maps", 0)},
                                    {"mask_input", config.value("mask_input", false)},
                                    {"loss_weight", config["loss_weight"]}};
    data::FrameFormat frames(config["channels"], config["height"], config["width"]);
    for (const size_t c : config.value("diagnostic", std::vector<size_t>())) frames.channels[c].diagnostic = true;
    model = make_model(options, frames);
    testing::load_golden_parameters(*model, file);
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  at::Tensor video() const { return read("video").to(at::kDouble); }
  at::Tensor actions(int64_t frames) const { return read("actions").slice(1, 0, frames).contiguous(); }
  Clips clips(int64_t frames) const {
    Clips all{video().slice(1, 0, frames), actions(frames)};
    if (file.contains("valid")) all.valid = read("valid").to(at::kBool).slice(1, 0, frames);
    return all;
  }
  Forecaster& forecaster() const { return *model->as_forecaster(); }
  double number(const std::string& name) const { return read(name).item<double>(); }
};

// The frames that the model makes of a context when its own go in.
at::Tensor alone(Model& model, const Clips& context, const at::Tensor& coming, int64_t frames) {
  torch::NoGradGuard no_grad;
  Forecaster& forecaster = *model.as_forecaster();
  State state = forecaster.start(context, {});
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < frames; ++k) {
    Forecast out = forecaster.next(state, coming.defined() ? coming.select(1, k) : coming);
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

class GoldenPixel : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenPixel, LossAndItsParts) {
  Golden golden(GetParam());
  const LossOutput out = golden.model->loss(golden.clips(golden.video().size(1)), {});
  EXPECT_NEAR(out.loss.item<double>(), golden.number("loss"), 1e-9 * golden.number("loss"));
  ASSERT_EQ(out.parts.size(), 2u);
  for (const auto& [name, value] : out.parts) EXPECT_NEAR(value.item<double>(), golden.number(name), 1e-9) << name;
  EXPECT_EQ(parameter_count(*golden.model), golden.read("parameter_count").item<int64_t>());
}

TEST_P(GoldenPixel, RolloutFeedsItsOwnFrames) {
  Golden golden(GetParam());
  const int64_t K = golden.read("context").item<int64_t>();
  const at::Tensor expected = golden.read("rollout").to(at::kDouble);
  const int64_t N = expected.size(1);
  const at::Tensor actions = golden.actions(K + N);
  const at::Tensor found = alone(*golden.model, golden.clips(K), actions.slice(1, K), N);
  EXPECT_LT(distance(found, expected), 1e-6);
}

TEST_P(GoldenPixel, TheSameInFloat32) {
  Golden golden(GetParam());
  golden.model->to(at::kFloat);
  Clips clips = golden.clips(golden.read("video").size(1));
  clips.video = clips.video.to(at::kFloat);
  const double loss = golden.model->loss(clips, {}).loss.item<double>();
  EXPECT_NEAR(loss, golden.number("loss"), 2e-6 * golden.number("loss"));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenPixel, ::testing::Values("pixel_plain", "pixel_odd", "pixel_flat", "pixel_field"),
                         [](const auto& i) { return i.param; });

TEST(PixelPredictor, AContextInChunksIsTheSameContext) {
  torch::NoGradGuard no_grad;
  Golden golden("pixel_odd");
  Forecaster& forecaster = golden.forecaster();
  const at::Tensor video = golden.video(), actions = golden.actions(6);
  const State whole = forecaster.start({video, actions.slice(1, 0, 5)}, {});
  const at::Tensor expected = forecaster.next(whole, actions.select(1, 5)).frame;
  for (int64_t cut = 1; cut < 5; ++cut) {
    State state = forecaster.start({video.slice(1, 0, cut), actions.slice(1, 0, cut)}, {});
    for (int64_t k = cut; k < 5; ++k) state = forecaster.observe(state, video.select(1, k), actions.select(1, k));
    EXPECT_LT(distance(forecaster.next(state, actions.select(1, 5)).frame, expected), 1e-12) << cut;
  }
}

TEST(PixelPredictor, ATrueFrameTakesThePlaceOfItsForecast) {
  torch::NoGradGuard no_grad;
  Golden golden("pixel_odd");
  Forecaster& forecaster = golden.forecaster();
  const at::Tensor video = golden.video(), actions = golden.actions(6);
  State state = forecaster.start({video.slice(1, 0, 1), actions.slice(1, 0, 1)}, {});
  for (int64_t k = 1; k < 5; ++k) {
    state = forecaster.next(state, actions.select(1, k)).state;
    state = forecaster.observe(state, video.select(1, k), data::masked_like(actions.select(1, k)));
  }
  const State whole = forecaster.start({video, actions.slice(1, 0, 5)}, {});
  const auto next = [&](const State& from) { return forecaster.next(from, actions.select(1, 5)).frame; };
  EXPECT_LT(distance(next(state), next(whole)), 1e-12);
}

TEST(PixelPredictor, NextGivesWhatTheLossSaw) {
  torch::NoGradGuard no_grad;
  Golden golden("pixel_plain");
  Forecaster& forecaster = golden.forecaster();
  const at::Tensor video = golden.video();
  const at::Tensor expected = golden.read("prediction").to(at::kDouble);
  for (int64_t k = 1; k < 5; ++k) {
    const State state = forecaster.start({video.slice(1, 0, k)}, {});
    EXPECT_LT(distance(forecaster.next(state, {}).frame, expected.select(1, k - 1)), 1e-6) << k;
  }
}

std::shared_ptr<Model> small_model(const nlohmann::json& core) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const auto model = make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}, {"actions", 3}}, {1, 7, 9});
  model->to(at::kDouble);
  return model;
}

const nlohmann::json kSmallCore = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}};

TEST(PixelPredictor, ForecastsAreThoseOfStartObserveAndNext) {
  torch::NoGradGuard no_grad;
  const int64_t frames = 19;  // more than are run at once
  const at::Tensor video = randn({2, frames, 1, 7, 9}, 4).tanh();
  const at::Tensor actions = at::arange(2 * (frames + 1)).remainder(4).sub(1).view({2, frames + 1});
  for (const char* name : {"convs5", "convlstm"}) {
    nlohmann::json core = {{"name", name}, {"features", 8}};
    if (core["name"] == "convs5") core["state_size"] = 8;
    const auto model = small_model(core);
    Forecaster& forecaster = *model->as_forecaster();
    const at::Tensor found = forecaster.forecasts({video}, actions.slice(1, 1)),
                     without = forecaster.forecasts({video}, {});
    EXPECT_GT(distance(found, without), 1e-6);
    EXPECT_LT(distance(found, forecaster.Forecaster::forecasts({video}, actions.slice(1, 1))), 1e-10);
    State state = forecaster.start({video.slice(1, 0, 1), actions.slice(1, 0, 1)}, {});
    State bare = forecaster.start({video.slice(1, 0, 1)}, {});
    for (int64_t k = 0; k < frames; ++k) {
      if (k > 0) state = forecaster.observe(state, video.select(1, k), actions.select(1, k));
      if (k > 0) bare = forecaster.observe(bare, video.select(1, k), {});
      EXPECT_LT(distance(found.select(1, k), forecaster.next(state, actions.select(1, k + 1)).frame), 1e-10) << k;
      EXPECT_LT(distance(without.select(1, k), forecaster.next(bare, {}).frame), 1e-10) << k;
    }
  }
}

Clips with_timing(const at::Tensor& video, const data::ClipTiming& timing) {
  Clips clips{video};
  clips.timing = timing;
  return clips;
}

TEST(PixelPredictor, ForecastsKnowWhenFramesWereTaken) {
  const auto model = small_model(kSmallCore);
  Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor video = randn({2, 19, 1, 7, 9}, 5).tanh(), two = at::full({2, 19}, 2.0);
  const auto forecasts = [&](const data::ClipTiming& timing) {
    return forecaster.forecasts(with_timing(video, timing), {});
  };
  const at::Tensor twice = forecasts({{}, {}, 2});
  EXPECT_FALSE(twice.requires_grad());
  EXPECT_GT(distance(twice, forecasts({})), 1e-6);
  EXPECT_LT(distance(forecasts({two, {}, 1}), twice), 1e-10);
  EXPECT_LT(distance(forecasts({at::ones({2, 19}), {}, 1}), forecasts({})), 1e-10);
  expect_error([&] { forecasts({at::ones({2, 18}), {}, 1}); }, {"forecasts", "dt", "19", "[2,18]"});
  expect_error([&] { forecaster.forecasts({video.select(1, 0)}, {}); }, {"forecasts", "[B,T,C,H,W]"});
  const auto without = small_model({{"name", "convlstm"}, {"features", 8}});
  const auto refused = [&](const data::ClipTiming& timing) {
    return [&, timing] { without->as_forecaster()->forecasts(with_timing(video, timing), {}); };
  };
  expect_error(refused({two, {}, 1}), {"dt", "no time between frames", "convs5"});
  expect_error(refused({{}, {}, 2}), {"step_rescale", "no time between frames"});
}

TEST(PixelPredictor, AContextKnowsWhenItsFramesWereTaken) {
  const auto model = small_model(kSmallCore);
  Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor video = randn({2, 6, 1, 7, 9}, 5).tanh();
  at::Tensor dt = at::arange(1, 13, at::kDouble).view({2, 6}) / 4, resets = at::zeros({2, 6}, at::kBool);
  dt.slice(1, 4).fill_(1);  // of frames that are observed
  resets[0][3] = true;
  for (const data::ClipTiming& timing :
       {data::ClipTiming{dt, {}, 1}, {{}, resets, 1}, {{}, {}, 0.25}, {dt, resets, 2}}) {
    const Clips clips = with_timing(video, timing);
    const at::Tensor expected = forecaster.forecasts(clips, {}), without = forecaster.forecasts({video}, {});
    EXPECT_GT(distance(expected, without), 1e-6);
    for (int64_t K = 1; K <= 4; ++K) {
      const State state = forecaster.start(data::frames_of(clips, 0, K), {});
      EXPECT_LT(distance(forecaster.next(state, {}).frame, expected.select(1, K - 1)), 1e-10) << K;
    }
    State seen = forecaster.start(data::frames_of(clips, 0, 4), {}), corrected = forecaster.next(seen, {}).state;
    for (int64_t k = 4; k < 6; ++k) {
      seen = forecaster.observe(seen, video.select(1, k), {});
      corrected = forecaster.observe(corrected, video.select(1, k), {});
      const Forecast next = forecaster.next(corrected, {});
      EXPECT_LT(distance(forecaster.next(seen, {}).frame, expected.select(1, k)), 1e-10) << k;
      EXPECT_LT(distance(next.frame, expected.select(1, k)), 1e-10) << k;
      corrected = next.state;
    }
  }
}

TEST(PixelPredictor, AStateOfAnotherBatchsTimesIsRefused) {
  const auto model = small_model(kSmallCore);
  Forecaster& forecaster = *model->as_forecaster();
  State state = forecaster.start(with_timing(randn({2, 3, 1, 7, 9}, 5).tanh(), {at::ones({2, 3}), {}, 1}), {});
  state.set("dt", at::ones({3}));
  expect_error([&] { forecaster.next(state, {}); }, {"dt", "[2]", "[3]"});
  state.set("dt", at::ones({2}));
  state.set("step_rescale", at::ones({2}));
  expect_error([&] { forecaster.next(state, {}); }, {"step_rescale", "[1]", "[2]"});
}

TEST(PixelPredictor, ForecastingKeepsNoGraph) {
  const auto model = small_model(kSmallCore);
  Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor video = randn({2, 3, 1, 7, 9}, 5).tanh();
  State state = forecaster.start({video}, {});
  const auto expect_none = [](const State& found) {
    for (const auto& [name, value] : found.items()) EXPECT_FALSE(value.requires_grad()) << name;
  };
  expect_none(state);
  expect_none(forecaster.observe(state, video.select(1, 0), {}));
  const Forecast next = forecaster.next(state, {});
  EXPECT_FALSE(next.frame.requires_grad());
  expect_none(next.state);
}

TEST(PixelPredictor, TheLossKnowsTimeAndWhatWasMeasured) {
  torch::NoGradGuard no_grad;
  const auto model = small_model(kSmallCore);
  const at::Tensor video = randn({2, 6, 1, 7, 9}, 5).tanh();
  const auto loss = [&](const Clips& clips) { return model->loss(clips, {}).loss.item<double>(); };
  const double plain = loss({video});
  EXPECT_NEAR(loss(with_timing(video, {at::ones({2, 6}), {}, 1})), plain, 1e-9 * plain);
  EXPECT_GT(std::abs(loss(with_timing(video, {at::full({2, 6}, 3.0), {}, 1})) - plain), 1e-6);
  at::Tensor resets = at::zeros({2, 6}, at::kBool);
  resets.select(1, 3).fill_(true);
  EXPECT_GT(std::abs(loss(with_timing(video, {{}, resets, 1})) - plain), 1e-9);
  Clips masked{video};
  masked.valid = at::ones_like(video, at::kBool);
  EXPECT_NEAR(loss(masked), plain, 1e-12 * plain);
  masked.valid.slice(1, 3).fill_(false);  // two of five predicted frames count
  const double first = loss({video.slice(1, 0, 3)});
  EXPECT_NEAR(loss(masked), first, 1e-9 * first);
}

TEST(PixelPredictor, ActionsMayBeNumbers) {
  torch::NoGradGuard no_grad;
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const auto model = make_model({{"encoder", coder},
                                 {"decoder", coder},
                                 {"core", kSmallCore},
                                 {"actions", 0},
                                 {"action_values", 2},
                                 {"action_features", 3}},
                                {1, 7, 9});
  const at::Tensor video = randn({2, 4, 1, 7, 9}, 5).tanh().to(at::kFloat);
  const at::Tensor numbers = randn({2, 4, 2}, 6).to(at::kFloat), masked = data::masked_like(numbers);
  const auto loss = [&](const at::Tensor& actions) { return model->loss({video, actions}, {}).loss.item<double>(); };
  EXPECT_NE(loss(numbers), loss(2 * numbers));
  EXPECT_TRUE(std::isfinite(loss(masked)));
  EXPECT_NE(loss(masked), loss(at::zeros_like(numbers)));
  Forecaster& forecaster = *model->as_forecaster();
  const State state = forecaster.start({video, numbers}, {});
  EXPECT_GT(distance(forecaster.next(state, numbers.select(1, 0)).frame, forecaster.next(state, {}).frame), 1e-7);
  EXPECT_FALSE(forecaster.compiles());
  expect_error([&] { loss(at::zeros({2, 4, 3})); }, {"actions", "[B,T,2]", "[2,4,3]"});
  expect_error([&] { loss(at::zeros({2, 4}, at::kLong)); }, {"actions", "[B,T,2]", "[2,4]"});
  expect_error([&] { model->check_data({{1, 7, 9}, {.values = 3}}); }, {"3 numbers", "model.action_values=3"});
  expect_error([&] { model->check_data({{1, 7, 9}}); }, {"action_values=2", "the data has none", "data.actions_key"});
  EXPECT_EQ(forecaster.actions().values, 2);
}

TEST(PixelPredictor, FramesOfAnySizeAndChannels) {
  torch::NoGradGuard no_grad;
  const nlohmann::json coder = {{"depths", {4, 8, 8}}};
  const nlohmann::json options = {
      {"encoder", coder}, {"decoder", coder}, {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}}};
  for (const auto& [C, H, W] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 7, 30}, {2, 16, 3}}) {
    const auto model = make_model(options, {C, H, W});
    const at::Tensor video = randn({2, 3, C, H, W}, 1).to(at::kFloat).tanh();
    EXPECT_TRUE(std::isfinite(model->loss({video}, {}).loss.item<double>()));
    const at::Tensor future = alone(*model, {video}, {}, 2);
    EXPECT_EQ(future.sizes(), (std::vector<int64_t>{2, 2, C, H, W}));
    EXPECT_LE(testing::max_abs(future), 1);
  }
}

TEST(PixelPredictor, ExplainsWrongUse) {
  const nlohmann::json options = {{"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
                                  {"encoder", {{"depths", {4, 8}}}},
                                  {"decoder", {{"depths", {4, 8}}}}};
  const auto model = make_model(options, {1, 8, 8});
  const at::Tensor video = at::zeros({1, 3, 1, 8, 8});
  expect_error([&] { model->loss({video.slice(1, 0, 1)}, {}); }, {"at least 2 frames", "1"});
  expect_error([&] { model->loss({at::zeros({1, 3, 3, 8, 8})}, {}); }, {"[B,T,1,8,8]", "[1,3,3,8,8]"});
  expect_error(
      [&] {
        model->loss({video, at::full({1, 3}, 1, at::kLong)}, {});
      },
      {"actions", "model.actions = 1", "got 1"});
  expect_error([&] { model->loss({video, at::zeros({1, 2}, at::kLong)}, {}); }, {"actions", "[1,3]", "[1,2]"});
  expect_error([&] { model->loss({}, {}); }, {"video"});
  expect_error([&] { model->as_forecaster()->next({}, {}); }, {"state", "start()"});
  State empty;
  empty.set("frame", at::zeros({0, 1, 8, 8}));
  expect_error([&] { model->as_forecaster()->clips_in(empty); }, {"at least one clip", "[0,1,8,8]"});
  expect_error([&] { model->as_forecaster()->clips_in({}); }, {"no frame"});
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = options;
    changed[key] = value;
    return [=] { make_model(changed, {1, 8, 8}); };
  };
  expect_error(with("encodr", {}), {"encodr", "did you mean 'encoder'"});
  expect_error(with("name", "pixle"), {"pixle", "pixel"});
  expect_error(with("core", {{"features", 8}}), {"core", "name"});
  expect_error(with("core", {{"name", "convs6"}, {"features", 8}}), {"convs6", "convs5"});
  expect_error(with("decoder", {{"depths", {4}}}), {"encoder", "decoder", "2", "1"});
  expect_error(with("loss_weight", 2), {"loss_weight", "2"});
  expect_error(with("actions", -1), {"actions", "-1"});
}

TEST(PixelPredictor, TheSameSeedGivesTheSameModel) {
  const auto make = [](uint64_t seed) {
    return make_model({{"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
                       {"encoder", {{"depths", {4, 8}}}},
                       {"decoder", {{"depths", {4, 8}}}},
                       {"seed", seed}},
                      {1, 8, 8});
  };
  const auto a = make(1u), b = make(1u), c = make(2u);
  bool differs = false;
  for (size_t i = 0; i < a->parameters().size(); ++i) {
    EXPECT_TRUE(a->parameters()[i].equal(b->parameters()[i]));
    differs = differs || !a->parameters()[i].equal(c->parameters()[i]);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace convssm::models
