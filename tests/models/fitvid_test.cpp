// FitVid against an independent NumPy computation (tools/golden/make_fitvid.py), its gradients, sizes, initial values, and what
// its running statistics are moved by.
#include "convssm/models/fitvid/fitvid.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ssm/initializers.h"
#include "tests/models/fitvid_golden.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::FitVidGolden;

void expect_near(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, 1e-9 * std::abs(expected)) << what;
}

void expect_fitvid_losses(const FitVidGolden& golden, const LossOutput& out, const std::string& prefix) {
  const bool latent = golden.section["stochastic"];
  expect_near(out.loss.item<double>(), golden.number(prefix + "loss"), "loss");
  EXPECT_EQ(out.parts.size(), 1u + (golden.on_codes() ? 1 : 0) + (latent ? 1 : 0));
  const double error = golden.number(prefix + "error");
  expect_near(out.parts[0].second.item<double>(), error, out.parts[0].first);
  EXPECT_EQ(out.parts[0].first, golden.on_codes() ? "cross_entropy" : "mse");
  if (golden.on_codes()) expect_near(testing::part_of(out, "nats_per_code").item<double>(), error / 24, "per code");
  if (latent) expect_near(testing::part_of(out, "kl").item<double>(), golden.number(prefix + "kl"), "kl");
}

class GoldenFitVid : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenFitVid, LossAndItsPartsInTraining) {
  const FitVidGolden golden(GetParam());
  expect_fitvid_losses(golden, golden.model->loss_of(golden.clips(), golden.draws), "");
  EXPECT_EQ(parameter_count(*golden.model), golden.read("parameter_count").item<int64_t>());
  for (const auto& item : golden.model->named_buffers()) {
    EXPECT_LT(distance(item.value(), golden.running(item.key(), true)), 1e-12) << item.key();
  }
}

TEST_P(GoldenFitVid, LossWithRunningStatistics) {
  const FitVidGolden golden(GetParam());
  golden.model->eval();
  expect_fitvid_losses(golden, golden.model->loss_of(golden.clips(), golden.draws), "eval.");
  for (const auto& item : golden.model->named_buffers()) {
    EXPECT_TRUE(item.value().equal(golden.running(item.key(), false))) << item.key();
  }
}

TEST_P(GoldenFitVid, TheSameInFloat32) {
  const FitVidGolden golden(GetParam());
  golden.model->to(at::kFloat);
  Clips clips = golden.clips();
  if (clips.video.defined()) clips.video = clips.video.to(at::kFloat);
  const double loss = golden.number("loss");
  EXPECT_NEAR(golden.model->loss_of(clips, golden.draws).loss.item<double>(), loss, 5e-6 * loss);
}

// Along a random direction of every parameter, through the statistics of the batch.
TEST_P(GoldenFitVid, GradientsAreThoseOfFiniteDifferences) {
  const FitVidGolden golden(GetParam());
  const Clips clips = golden.clips();
  const auto loss = [&] { return golden.model->loss_of(clips, golden.draws).loss; };
  testing::expect_gradients(*golden.model, loss, 1e-5, 1e-7);
}

// Of the true frames, then of what was made; codes as the shades that stand for them.
at::Tensor expected_frames(const FitVidGolden& golden, const char* name) {
  const at::Tensor made = golden.read(name).to(at::kDouble);
  return golden.on_codes() ? (made * (2.0 / 6) - 1).unsqueeze(2) : made;
}

FitVidGolden forecasting(const char* name) {
  const bool codes = std::string(name) == "fitvid_codes";
  FitVidGolden golden(name, codes ? nlohmann::json{{"top_k", 1}} : nlohmann::json::object(), codes);
  golden.model->eval();
  return golden;
}

Clips clips_with_video(const FitVidGolden& golden) {
  Clips clips = golden.clips();
  if (golden.on_codes()) {
    clips.video = (clips.codes.to(at::kDouble) * (2.0 / 6) - 1).unsqueeze(2);
    clips.codes = at::Tensor();
  }
  return clips;
}

TEST_P(GoldenFitVid, AFutureOfPriorsThatSeesTheLastFrameOfTheContext) {
  const FitVidGolden golden = forecasting(GetParam());
  FitVid& model = *golden.model;
  const Clips clips = clips_with_video(golden);
  const int64_t K = golden.read("context").item<int64_t>();
  const at::Tensor expected = expected_frames(golden, "rollout");
  for (const bool training : {false, true}) {  // a forecast takes running statistics all the same
    model.train(training);
    State state = model.start(data::frames_of(clips, 0, K), {});
    for (int64_t k = 0; k < expected.size(1); ++k) {
      const Forecast out = model.next(state, clips.actions.select(1, K + k));
      EXPECT_LT(distance(out.frame, expected.select(1, k)), 1e-9) << k;
      state = out.state;
    }
  }
}

// It becomes the newest frame of the context; the forecast before it stays what was seen of its frame.
TEST_P(GoldenFitVid, ATrueFrameIsShownFromThenOn) {
  const FitVidGolden golden = forecasting(GetParam());
  FitVid& model = *golden.model;
  const Clips clips = clips_with_video(golden);
  const int64_t K = golden.read("context").item<int64_t>();
  const at::Tensor expected = expected_frames(golden, "corrected");
  const auto action = [&](int64_t t) { return clips.actions.select(1, t); };
  State state = model.start(data::frames_of(clips, 0, K), {});
  for (int64_t k = K; k < K + 2; ++k) state = model.next(state, action(k)).state;
  state = model.observe(state, clips.video.select(1, K + 1), action(K + 1));
  for (int64_t k = 0; k < expected.size(1); ++k) {
    const Forecast out = model.next(state, action(K + 2 + k));
    EXPECT_LT(distance(out.frame, expected.select(1, k)), 1e-9) << k;
    state = out.state;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFitVid, ::testing::Values("fitvid_plain", "fitvid_options", "fitvid_codes"),
                         [](const auto& i) { return i.param; });

TEST(FitVid, PixelsThatWereNotMeasuredDoNotCount) {
  for (const char* name : {"fitvid_plain", "fitvid_options"}) {
    const FitVidGolden golden(name);
    Clips clips = golden.clips();
    clips.valid = golden.read("valid").to(at::kBool);
    expect_fitvid_losses(golden, golden.model->loss_of(clips, golden.draws), "valid.");
  }
}

int64_t count_below(const Model& model, const std::string& prefix) {
  int64_t count = 0;
  for (const auto& item : model.named_parameters()) count += item.key().starts_with(prefix) ? item.value().numel() : 0;
  return count;
}

// The sizes of the published runs, with actions of five numbers. The published predictor has a head of variances besides,
// 256 x 128 + 128 parameters, which nothing depends on.
TEST(FitVid, HasThePublishedSizes) {
  const ssm::WithoutValues without;
  const auto model = make_model({{"name", "fitvid"}, {"action_values", 4}, {"action_features", 5}}, {3, 64, 64});
  const auto millions = [&](const std::string& prefix) {
    return static_cast<double>(count_below(*model, prefix)) * 1e-6;
  };
  EXPECT_NEAR(millions("encoder."), 11.29, 0.005);
  EXPECT_NEAR(millions("decoder."), 288.97, 0.005);
  const double recurrent = millions("posterior.") + millions("prior.") + millions("predictor.");
  EXPECT_NEAR(recurrent + (256 * 128 + 128) * 1e-6, 2.28, 0.005);
  EXPECT_NEAR(millions(""), 302.5, 0.05);
  // Per decoder block of f channels 25 (4f)^2 in its large convolution.
  double large = 0;
  for (const double f : {512, 256, 128, 64}) large += 2 * 400 * f * f * 1e-6;
  EXPECT_NEAR(large / millions("decoder."), 0.96, 0.01);
  const auto count = [](int64_t filters) {
    return static_cast<double>(parameter_count(*make_model({{"name", "fitvid"}, {"filters", filters}}, {3, 64, 64}))) *
           1e-6;
  };
  EXPECT_NEAR(count(48), 172.0, 0.1);
  EXPECT_NEAR(count(32), 78.4, 0.1);
}

TEST(FitVid, BeginsAsPublished) {
  const auto model =
      make_model({{"name", "fitvid"}, {"stages", 2}, {"filters", 8}, {"expansion", 2}, {"memory", 12}, {"hidden", 10}},
                 {1, 16, 16});
  const auto parameters = model->named_parameters();
  for (const auto& item : parameters) {
    const std::string& name = item.key();
    if (name.ends_with("bias")) {
      EXPECT_EQ(testing::max_abs(item.value()), 0) << name;
    }
    if (name.find("norm") == std::string::npos || !name.ends_with("weight")) continue;
    const double expected = name.find("norm3") == std::string::npos ? 1 : 0;
    EXPECT_TRUE(item.value().equal(at::full_like(item.value(), expected))) << name;
  }
  const at::Tensor hidden = parameters["prior.memory.lstm0.hidden"].detach().to(at::kDouble);
  for (const at::Tensor& gate : hidden.chunk(4)) {
    EXPECT_LT(distance(gate.t().mm(gate), at::eye(12, at::kDouble)), 1e-6) << "each gate";
  }
  const at::Tensor conv = parameters["decoder.block1.conv.weight"].detach();
  EXPECT_NEAR(conv.std().item<double>(), 1 / std::sqrt(25 * conv.size(1)), 0.01);
  for (const auto& item : model->named_buffers()) {
    EXPECT_TRUE(item.value().equal(at::full_like(item.value(), item.key().ends_with("variance") ? 1 : 0)));
  }
}

// Of five frames a context ends after frame 0, 1, 2 or 3; a clip is cut there and at the mirror image.
TEST(FitVid, EveryEndOfAContextIsAsLikely) {
  const auto model = make_model(
      {{"name", "fitvid"}, {"stages", 1}, {"filters", 1}, {"expansion", 1}, {"stochastic", false}}, {1, 2, 2});
  FitVid& fitvid = dynamic_cast<FitVid&>(*model);
  fitvid.eval();
  torch::NoGradGuard no_grad;
  const Clips clips{testing::randn({1, 5, 1, 2, 2}, 1).tanh().to(at::kFloat)};
  const auto cut_at = [&](int64_t cut) { return fitvid.loss_of(clips, {{}, {cut}}).loss.item<double>(); };
  EXPECT_NEAR(cut_at(0), cut_at(3), 1e-6);
  EXPECT_NEAR(cut_at(1), cut_at(2), 1e-6);
  EXPECT_GT(std::abs(cut_at(0) - cut_at(1)), 1e-4);
  int outer = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const double loss = fitvid.loss(clips, {"model", 0, 1, Stream(seed)}).loss.item<double>();
    const bool first = std::abs(loss - cut_at(0)) < 1e-6;
    EXPECT_TRUE(first || std::abs(loss - cut_at(1)) < 1e-6) << seed;
    outer += first ? 1 : 0;
  }
  EXPECT_NEAR(outer, 200, 50);
}

// Of frames after the cut alone: what comes before it has no part in the errors but as context.
TEST(FitVid, FramesUpToTheCutHaveNoLoss) {
  FitVidGolden golden("fitvid_plain");
  golden.model->eval();
  torch::NoGradGuard no_grad;
  Clips clips = golden.clips();
  const auto error = [&](const std::vector<int64_t>& cuts) {
    return testing::part_of(golden.model->loss_of(clips, {golden.draws.noise, cuts}), "mse").item<double>();
  };
  const std::vector<int64_t> middle = {2, 2, 2};  // of six frames: cut after frame 2, twice
  clips.inputs = clips.video;
  const double before = error(middle);
  clips.video = clips.video.clone();
  clips.video.slice(1, 0, 3).neg_();
  EXPECT_EQ(error(middle), before);
  clips.video.slice(1, 3, 4).neg_();
  EXPECT_NE(error(middle), before);
}

TEST(FitVid, DrawsAreThoseOfTheStream) {
  const FitVidGolden golden("fitvid_plain");
  const auto loss = [&](uint64_t seed) {
    return golden.model->loss(golden.clips(), {"model", 0, 1, Stream(seed)}).loss.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

std::vector<at::Tensor> running_values(const Model& model) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& buffer : model.buffers()) values.push_back(buffer.clone());
  return values;
}

bool same_running(const Model& model, const std::vector<at::Tensor>& values) {
  const std::vector<at::Tensor> now = model.buffers();
  return std::equal(now.begin(), now.end(), values.begin(), [](const auto& a, const auto& b) { return a.equal(b); });
}

TEST(FitVid, OnlyTrainingMovesRunningStatistics) {
  const FitVidGolden golden("fitvid_plain");
  FitVid& model = *golden.model;
  const auto before = running_values(model);
  EXPECT_FALSE(before.empty());
  {
    torch::NoGradGuard no_grad;
    model.loss(golden.clips(), {});
  }
  EXPECT_TRUE(same_running(model, before)) << "nobody asked for gradients";
  State state = model.start(data::frames_of(golden.clips(), 0, 3), {});
  state = model.next(state, {}).state;
  model.observe(state, golden.clips().video.select(1, 3), {});
  EXPECT_TRUE(same_running(model, before)) << "a forecast in training mode";
  {
    const EvalMode mode(model);
    model.loss(golden.clips(), {}).loss.backward();
  }
  EXPECT_TRUE(same_running(model, before)) << "a loss in eval mode";
  Clips broken = golden.clips();
  broken.video = at::full_like(broken.video, NAN);
  model.loss(broken, {});
  EXPECT_TRUE(same_running(model, before)) << "frames that are none";
  model.loss(golden.clips(), {});
  EXPECT_FALSE(same_running(model, before));
}

// In eval mode what is said of a clip does not depend on the clips beside it; in training it does, by the statistics.
TEST(FitVid, ClipsAreAloneWithRunningStatistics) {
  const FitVidGolden golden("fitvid_plain");
  torch::NoGradGuard no_grad;
  const auto row_losses = [&] {
    double sum = 0;
    for (int64_t b = 0; b < 3; ++b) {
      const FitVidDraws draws{golden.draws.noise.slice(1, b, b + 1), {golden.draws.cuts[static_cast<size_t>(b)]}};
      sum += golden.model->loss_of(data::rows_of(golden.clips(), b, b + 1), draws).loss.item<double>() / 3;
    }
    return sum;
  };
  const auto whole = [&] { return golden.model->loss_of(golden.clips(), golden.draws).loss.item<double>(); };
  EXPECT_GT(std::abs(whole() - row_losses()), 1e-4);
  golden.model->eval();
  EXPECT_NEAR(whole(), row_losses(), 1e-12);
}

TEST(FitVid, RefusesWhatItCannotDo) {
  const auto made = [](nlohmann::json options) {
    options["name"] = "fitvid";
    return [options] { make_model(options, {1, 12, 16}); };
  };
  expect_error(made({{"stages", 0}}), {"stages", "0"});
  expect_error(made({}), {"multiples of 8", "12 x 16", "fewer stages"});
  expect_error(made({{"stages", 2}, {"skips", "both"}}), {"residual or concat", "both"});
  expect_error(made({{"stages", 2}, {"beta", -1}}), {"beta", "-1"});
  expect_error(made({{"filter", 3}}), {"filter", "filters"});
  expect_error(made({{"temperature", 2}}), {"temperature"});
  const FitVidGolden golden("fitvid_plain"), past("fitvid_options");
  expect_error([&] { past.model->check_length(2); }, {"n_past", "train.frames = 2", "2"});
  EXPECT_NO_THROW(past.model->check_length(3));
  Clips clips = golden.clips();
  clips.timing.dt = at::ones({3, 6});
  expect_error([&] { golden.model->loss(clips, {}); }, {"knows no time"});
  expect_error([&] { golden.model->loss(data::frames_of(golden.clips(), 0, 1), {}); }, {"at least 2 frames", "1"});
  expect_error([&] { golden.model->loss({at::zeros({1, 2, 1, 4, 4})}, {}); }, {"[B,T,1,6,8]"});
  expect_error([&] { golden.model->start({}, {}); }, {"at least 1 frame"});
  expect_error([&] { golden.model->check_data({{1, 6, 8}, {}, {7, 6, 4}}); }, {"holds codes", "model.tokenizer"});
}

}  // namespace
}  // namespace convssm::models
