// Several settings, futures and truths against loops over clips, futures and frames.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/setting.h"
#include "convssm/generate/generate.h"
#include "convssm/io/safetensors.h"
#include "convssm/metrics/fvd.h"
#include "tests/base/scratch_folder.h"
#include "tests/evaluate/block_model.h"
#include "tests/metrics/i3d_weights.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using nlohmann::json;
using Values = std::vector<double>;

constexpr int64_t kClips = 6;

json two_settings() {
  return {{{"context", 4}, {"frames", 6}, {"actions", true}},
          {{"context", 3}, {"frames", 8}, {"actions", false}, {"metrics", {"mse_sum"}}}};
}

json block_options(const json& more) {
  json all = {{"samples", kClips}, {"chunk", 3},        {"batch", 4},
              {"strips", 2},       {"quantize", false}, {"metrics", {"psnr_f01", "mse_sum"}}};
  all.update(more);
  return all;
}

Evaluation evaluate_blocks(models::Model& model, const data::Dataset& dataset, const json& more,
                           const std::function<bool(int64_t)>& progress = {}) {
  const auto o = EvaluateOptions::from_json(block_options(more));
  return evaluate(model, dataset, o, make_metrics(o, scored_frames(model, dataset)), "blocks", progress);
}

double squares(const at::Tensor& a, const at::Tensor& b) {  // of frames in [-1,1], taken to [0,1], summed
  double sum = 0;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = (x.data_ptr<float>()[i] - y.data_ptr<float>()[i]) / 2.0;
    sum += d * d;
  }
  return sum;
}

double block_score(const std::string& metric, const at::Tensor& a, const at::Tensor& b) {
  const double sum = squares(a, b);
  return metric == "mse_sum" ? sum : -10 * std::log10(sum / (kBlockSide * kBlockSide));
}

// The future of one clip alone, [N,1,H,W], without the engine.
at::Tensor future_of(const data::Clips& clip, int64_t clip_number, int64_t K, int64_t N, int64_t future, bool actions) {
  BlockModel model;
  const at::NoGradGuard no_grad;
  data::Clips known = data::frames_of(clip, 0, K);
  if (!actions) known.actions = at::full({1, K}, -1, at::kLong);
  models::State state = model.start(known, {generate::future_seed(1, clip_number, future)});
  std::vector<at::Tensor> frames;
  for (int64_t k = 0; k < N; ++k) {
    const at::Tensor action = actions ? clip.actions.select(1, K + k) : at::full({1}, -1, at::kLong);
    models::Forecast out = model.next(state, action);
    frames.push_back(out.frame[0]);
    state = out.state;
  }
  return at::stack(frames);
}

double mean_over_frames(const std::string& metric, const at::Tensor& truth, const at::Tensor& forecast) {
  double sum = 0;
  for (int64_t k = 0; k < truth.size(0); ++k) sum += block_score(metric, truth[k], forecast[k]);
  return sum / static_cast<double>(truth.size(0));
}

// Mean and population deviation over two chunks of 3.
void expect_chunked(const json& score, const Values& clips, const char* mean = "mean", const char* std = "std") {
  const double a = (clips[0] + clips[1] + clips[2]) / 3, b = (clips[3] + clips[4] + clips[5]) / 3;
  EXPECT_NEAR(score[mean].get<double>(), (a + b) / 2, 1e-4 * std::abs(a + b));
  EXPECT_NEAR(score[std].get<double>(), std::abs(a - b) / 2, 1e-3 * std::abs(a - b) + 1e-4);
}

TEST(Settings, EachIsItsOwnRolloutAndScores) {
  BlockModel model(false);
  const BlockClips dataset;
  const json metrics = evaluate_blocks(model, dataset, {{"settings", two_settings()}}).metrics;
  EXPECT_FALSE(metrics.contains("horizons"));
  ASSERT_EQ(metrics["settings"].size(), 2u);
  Values with, without, copies;
  for (int64_t i = 0; i < kClips; ++i) {
    const data::Clips clip = dataset.clip(data::Split::test, static_cast<uint64_t>(i), 20);
    const at::Tensor video = clip.video[0];
    with.push_back(mean_over_frames("psnr_f01", video.slice(0, 4, 10), future_of(clip, i, 4, 6, 0, true)));
    without.push_back(mean_over_frames("mse_sum", video.slice(0, 3, 11), future_of(clip, i, 3, 8, 0, false)));
    copies.push_back(mean_over_frames("mse_sum", video.slice(0, 3, 11), video.slice(0, 2, 3).expand({8, 1, 12, 12})));
  }
  const json &first = metrics["settings"][0], &second = metrics["settings"][1];
  EXPECT_EQ(first["name"], "4+6 actions");
  EXPECT_EQ(second["name"], "3+8 no actions");
  EXPECT_EQ(second["context"], 3);
  EXPECT_EQ(first["actions"], true);
  EXPECT_EQ(second["actions"], false);
  expect_chunked(first["horizons"][0]["rows"][0]["psnr_f01"], with);
  expect_chunked(second["horizons"][0]["rows"][0]["mse_sum"], without);
  expect_chunked(second["horizons"][0]["rows"][1]["mse_sum"], copies);
  EXPECT_FALSE(second["horizons"][0]["rows"][0].contains("psnr_f01"));
  EXPECT_EQ(second["curves"]["mse_sum"]["blocks"].size(), 8u);
  EXPECT_EQ(metrics["protocol"]["settings"][1]["frames"], 8);
  EXPECT_EQ(metrics["protocol"]["samples"], kClips);
}

TEST(Settings, MaskedActionsReachTheModel) {
  BlockModel model(false);
  const BlockClips dataset;
  evaluate_blocks(model, dataset, {{"settings", json::array({two_settings()[1]})}});
  ASSERT_EQ(model.told.size(), 2u * 9);  // two batches: a context and 8 frames each
  EXPECT_EQ(model.told[0].sizes(), (std::vector<int64_t>{4, 3}));
  for (const at::Tensor& actions : model.told) EXPECT_TRUE(actions.eq(-1).all().item<bool>());
  model.told.clear();
  evaluate_blocks(model, dataset, {{"settings", json::array({two_settings()[0]})}});
  const at::Tensor truth = dataset.clip(data::Split::test, 0, 20).actions[0];
  EXPECT_TRUE(model.told[0][0].equal(truth.slice(0, 0, 4)));
  for (int64_t k = 0; k < 6; ++k) EXPECT_TRUE(model.told[static_cast<size_t>(1 + k)][0].equal(truth[4 + k]));
}

// The form with horizons is the same mechanism, and a setting does not depend on those beside it.
TEST(Settings, AContextWithAHorizonIsOneOfThem) {
  BlockModel model;
  const BlockClips dataset;
  const json plain = evaluate_blocks(model, dataset, {{"context", 4}, {"horizons", {6}}}).metrics;
  const json both = evaluate_blocks(model, dataset, {{"settings", two_settings()}}).metrics;
  EXPECT_EQ(plain["horizons"], both["settings"][0]["horizons"]);
  EXPECT_EQ(plain["curves"], both["settings"][0]["curves"]);
  EXPECT_EQ(plain["protocol"]["context"], 4);
  EXPECT_EQ(plain["protocol"]["horizons"], json({6}));
  EXPECT_FALSE(plain.contains("settings"));
  const json alone = evaluate_blocks(model, dataset, {{"settings", json::array({two_settings()[1]})}}).metrics;
  EXPECT_EQ(alone["settings"][0]["horizons"], both["settings"][1]["horizons"]);
}

TEST(Settings, SeveralFuturesHaveAMeanAndABestOne) {
  BlockModel model;
  const BlockClips dataset;
  const json metrics = evaluate_blocks(model, dataset, {{"context", 4}, {"horizons", {2, 6}}, {"futures", 3}}).metrics;
  for (const std::string metric : {"psnr_f01", "mse_sum"}) {
    Values means, bests;
    for (int64_t i = 0; i < kClips; ++i) {
      const data::Clips clip = dataset.clip(data::Split::test, static_cast<uint64_t>(i), 20);
      Values found;
      for (int64_t n = 0; n < 3; ++n) {
        const at::Tensor future = future_of(clip, i, 4, 6, n, true).slice(0, 0, 2);
        found.push_back(mean_over_frames(metric, clip.video[0].slice(0, 4, 6), future));
      }
      means.push_back((found[0] + found[1] + found[2]) / 3);
      bests.push_back(metric == "mse_sum" ? *std::ranges::min_element(found) : *std::ranges::max_element(found));
    }
    const json& score = metrics["horizons"][0]["rows"][0][metric];
    expect_chunked(score, means);
    expect_chunked(score, bests, "best", "best_std");
    const double gain = score["best"].get<double>() - score["mean"].get<double>();
    EXPECT_GT(metric == "mse_sum" ? -gain : gain, 1e-3);
  }
  EXPECT_FALSE(metrics["horizons"][0]["rows"][1]["psnr_f01"].contains("best"));  // a copy is one future
  const auto& seen = metrics["horizons"][1]["seen_before"]["rows"][0]["psnr_f01"];
  EXPECT_GT(seen["best"].get<double>(), seen["mean"].get<double>());
  EXPECT_EQ(metrics["protocol"]["futures"], 3);
  EXPECT_NE(table_text(metrics).find("best of 3"), std::string::npos) << table_text(metrics);

  BlockModel still(true, false);
  const json one = evaluate_blocks(still, dataset, {{"context", 4}, {"horizons", {6}}, {"futures", 3}}).metrics;
  EXPECT_EQ(one["protocol"]["futures"], 1);
  EXPECT_FALSE(one["horizons"][0]["rows"][0]["psnr_f01"].contains("best"));
}

TEST(Settings, PlacesSeenBeforeAreThoseOfTheirContext) {
  BlockModel model;
  const BlockClips dataset;
  const json metrics = evaluate_blocks(model, dataset, {{"settings", two_settings()}}).metrics;
  const json &first = metrics["settings"][0]["horizons"][0], &second = metrics["settings"][1]["horizons"][0];
  EXPECT_NEAR(first["seen_before"]["share"].get<double>(), 1.0 / 6, 1e-12);
  EXPECT_EQ(second["seen_before"]["share"], 0);  // the place of frame 3 was not in the context
  EXPECT_TRUE(second["seen_before"]["rows"].empty());
  double seen = 0;
  for (int64_t i = 0; i < kClips; ++i) {
    const data::Clips clip = dataset.clip(data::Split::test, static_cast<uint64_t>(i), 20);
    seen += block_score("psnr_f01", clip.video[0][5], future_of(clip, i, 4, 6, 0, true)[1]) / kClips;
  }
  EXPECT_NEAR(first["seen_before"]["rows"][0]["psnr_f01"]["mean"].get<double>(), seen, 1e-3);
}

TEST(Settings, FvdSeesWholeClipsWithTheTrueContext) {
  const ScratchFolder scratch;
  io::write_safetensors(scratch.path("i3d_rgb_scratch.safetensors"), testing::made_up_i3d());
  const metrics::I3d net(scratch.path("i3d_rgb_scratch.safetensors"));
  BlockModel model(false);
  const BlockClips dataset;
  const auto o = EvaluateOptions::from_json(block_options(
      {{"settings", {{{"context", 4}, {"frames", 6}, {"metrics", {"fvd_i3d"}}}}}, {"samples", 2}, {"chunk", 2}}));
  const auto metrics = make_metrics(o, dataset.format(), metrics::WeightFolder(scratch.path()));
  const json found = evaluate(model, dataset, o, metrics, "blocks").metrics["settings"][0]["horizons"][0]["rows"][0];
  std::vector<at::Tensor> truth, fake;
  for (int64_t i = 0; i < 2; ++i) {
    const data::Clips clip = dataset.clip(data::Split::test, static_cast<uint64_t>(i), 10);
    truth.push_back((clip.video[0] + 1) / 2);
    fake.push_back(at::cat({truth.back().slice(0, 0, 4), (future_of(clip, i, 4, 6, 0, true) + 1) / 2}));
  }
  const auto features = [&](const std::vector<at::Tensor>& clips) {
    return metrics::fvd_features(net, at::stack(clips));
  };
  const double expected = metrics::fvd_i3d(features(truth), features(fake)).mean;
  EXPECT_NEAR(found["fvd_i3d"]["mean"].get<double>(), expected, 1e-3 * expected);
}

TEST(Settings, CanBeStoppedInTheSecond) {
  BlockModel model;
  const BlockClips dataset;
  const auto run = [&](int64_t last, std::vector<int64_t>& told) {
    return evaluate_blocks(model, dataset, {{"settings", two_settings()}}, [&](int64_t done) {
      told.push_back(done);
      return done < last;
    });
  };
  std::vector<int64_t> told;
  const Evaluation second = run(10, told);
  EXPECT_EQ(told, (std::vector<int64_t>{4, 6, 10}));
  EXPECT_EQ(second.metrics["settings"][0]["samples"], 6);
  EXPECT_EQ(second.metrics["settings"][1]["samples"], 4);
  EXPECT_NE(table_text(second.metrics).find("4 samples so far"), std::string::npos);
  EXPECT_EQ(run(6, told).metrics["settings"].size(), 1u);
  EXPECT_EQ(count_samples(dataset, EvaluateOptions::from_json(block_options({{"settings", two_settings()}}))), 12);
}

TEST(Settings, TheTableNamesThem) {
  BlockModel model;
  const BlockClips dataset;
  const Evaluation result = evaluate_blocks(model, dataset, {{"settings", two_settings()}});
  const std::string text = table_text(result.metrics);
  for (const char* part :
       {"6 clips; mean ± spread between chunks of 3", "[4+6 actions] 4 frames of context, actions given",
        "6 frames ahead", "[3+8 no actions] 3 frames of context, actions masked", "8 frames ahead", "copy last frame",
        "tokenizer ceiling", "seen before: 17% of the frames"}) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
  }
  ASSERT_EQ(result.clips.size(), 2u);
  EXPECT_EQ(result.clips[1].context, 3);
  EXPECT_EQ(result.clips[1].forecast[0].size(0), 11);
}

}  // namespace
}  // namespace convssm::evaluate
