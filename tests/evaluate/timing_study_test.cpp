// The timing study: what must agree whatever the model is, and its simplest line against numbers computed here.
#include "convssm/evaluate/timing_study.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/evaluate/timing_parts.h"
#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using testing::expect_error;

const nlohmann::json kData = {
    {"name", "moving-mnist"}, {"digits", 1}, {"image_size", 20}, {"digit_size", 8}, {"step", 0.2}};

struct Fixture {
  TimingClips clips{data::make_dataset(kData, 3), data::make_dataset(finer_data(kData), 3)};
  std::shared_ptr<models::Model> model =
      models::make_model({{"encoder", {{"depths", {4, 8}}}},
                          {"decoder", {{"depths", {4, 8}}}},
                          {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"dt_max", 1.0}}}},
                         {1, 20, 20});
  TimingOptions options{.context = 3, .frames = 9, .samples = 5, .batch = 2};

  nlohmann::json study() { return study_timing(*model, clips, options); }
};

double mean(const nlohmann::json& line, size_t point, const char* metric = "psnr_f01") {
  return line[metric]["mean"][point].get<double>();
}

double psnr(const at::Tensor& a, const at::Tensor& b) {  // of frames in [-1,1], as 8-bit numbers cut down
  const auto pixels = [](const at::Tensor& x) { return at::floor((0.5 * x + 0.5) * 255).clamp(0, 255) / 255; };
  const double mse = (pixels(a) - pixels(b)).to(at::kDouble).square().mean().item<double>();
  return mse == 0 ? 100 : -10 * std::log10(mse);
}

TEST(TimingStudy, AtTheTrainingRateRescalingChangesNothing) {
  Fixture f;
  const auto lines = f.study()["rates"]["lines"];
  const size_t same = 3;
  for (const char* metric : {"psnr_f01", "ssim_gauss11"}) {
    for (const size_t line : {1, 2, 3}) EXPECT_EQ(mean(lines[line], same, metric), mean(lines[0], same, metric));
  }
  EXPECT_NE(mean(lines[0], 0), mean(lines[1], 0));
  EXPECT_NE(mean(lines[0], 0), mean(lines[2], 0));
}

TEST(TimingStudy, WithoutMissingFramesAllWaysAreOne) {
  Fixture f;
  const auto lines = f.study()["dropped"]["lines"];
  ASSERT_EQ(lines.size(), 5u);
  for (const size_t line : {1, 2, 3}) {
    EXPECT_NEAR(mean(lines[line], 0), mean(lines[0], 0), 1e-3) << line;
    EXPECT_NEAR(mean(lines[line], 0, "ssim_gauss11"), mean(lines[0], 0, "ssim_gauss11"), 1e-4) << line;
  }
  for (const size_t line : {1, 2, 3}) EXPECT_NE(mean(lines[line], 5), mean(lines[0], 5)) << line;
}

TEST(TimingStudy, CopiesScoreWhatACopyScores) {
  Fixture f;
  const auto result = f.study();
  EXPECT_EQ(result["protocol"]["samples"], 5);
  const auto at_rates = result["rates"]["lines"][4], with_gaps = result["dropped"]["lines"][4];
  for (const auto& [point, stride] : std::vector<std::pair<size_t, int64_t>>{{0, 1}, {2, 3}, {5, 8}}) {
    double sum = 0;
    for (int64_t clip = 0; clip < 5; ++clip) {
      const at::Tensor video = f.clips.fine->clip(data::Split::test, clip, 9 * 4 + 8).video[0];
      double own = 0;
      int64_t count = 0;
      for (int64_t t = 0; t < 9 * 4; t += stride) {
        if (t < 3 * 4) continue;
        own += psnr(video[t], video[t + 4]);
        ++count;
      }
      sum += own / static_cast<double>(count);
    }
    EXPECT_NEAR(mean(at_rates, point), sum / 5, 0.02) << stride;
  }
  double sum = 0;
  int64_t clips = 0;
  for (int64_t clip = 0; clip < 5; ++clip) {
    const at::Tensor video = f.clips.trained->clip(data::Split::test, clip, 10).video[0];
    const at::Tensor kept = kept_frames(f.options.seed, clip, 0.4, 9);
    double own = 0;
    int64_t count = 0;
    for (int64_t t = 3; t < 9; ++t) {
      if (!kept[t].item<bool>()) continue;
      own += psnr(video[t], video[t + 1]);
      ++count;
    }
    if (count == 0) continue;
    sum += own / static_cast<double>(count);
    ++clips;
  }
  EXPECT_NEAR(mean(with_gaps, 4), sum / static_cast<double>(clips), 0.02);
}

// One clip with one frame missing, fed by hand.
TEST(TimingStudy, TheWaysAreWhatTheySay) {
  torch::NoGradGuard no_grad;
  Fixture f;
  f.options.samples = 1;
  uint64_t seed = 1;
  const auto only_frame_4_misses = [](const at::Tensor& kept) {
    return kept.sum().item<int64_t>() == 8 && !kept[4].item<bool>();
  };
  while (!only_frame_4_misses(kept_frames(seed, 0, 0.1, 9))) ++seed;
  f.options.seed = seed;
  const at::Tensor video = f.clips.trained->clip(data::Split::test, 0, 10).video;
  const at::Tensor seen = at::cat({video.slice(1, 0, 4), video.slice(1, 5, 9)}, 1);
  at::Tensor dt = at::ones({1, 8}), held = video.slice(1, 0, 9).clone(), filled = held.clone();
  dt[0][4] = 2;
  held.select(1, 4).copy_(video.select(1, 3));
  models::Forecaster& forecaster = *f.model->as_forecaster();
  filled.select(1, 4).copy_(forecaster.forecasts({video.slice(1, 0, 4)}, {}).select(1, 3));
  data::Clips timed{seen};
  timed.timing.dt = dt;
  const at::Tensor true_dt = forecaster.forecasts(timed, {}), no_dt = forecaster.forecasts({seen}, {});
  const at::Tensor hold = forecaster.forecasts({held}, {}), fill = forecaster.forecasts({filled}, {});
  std::array<double, 4> expected{};
  for (const int64_t t : {3, 5, 6, 7, 8}) {
    const at::Tensor truth = video.select(1, t + 1);
    const int64_t k = t > 4 ? t - 1 : t;
    expected[0] += psnr(true_dt.select(1, k), truth) / 5;
    expected[1] += psnr(no_dt.select(1, k), truth) / 5;
    expected[2] += psnr(hold.select(1, t), truth) / 5;
    expected[3] += psnr(fill.select(1, t), truth) / 5;
  }
  const auto lines = f.study()["dropped"]["lines"];
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(mean(lines[i], 1), expected[i], 0.02) << i;
}

TEST(TimingStudy, FramesAreDroppedBySeedAndClip) {
  const at::Tensor kept = kept_frames(1, 7, 0.3, 2000);
  EXPECT_TRUE(kept.equal(kept_frames(1, 7, 0.3, 2000)));
  EXPECT_FALSE(kept.equal(kept_frames(2, 7, 0.3, 2000)));
  EXPECT_FALSE(kept.equal(kept_frames(1, 8, 0.3, 2000)));
  EXPECT_TRUE(kept[0].item<bool>());
  EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 0.7, 0.04);
  EXPECT_TRUE(kept_frames(1, 7, 0, 50).all().item<bool>());
  const at::Tensor fewer = kept_frames(1, 7, 0.6, 2000);
  EXPECT_TRUE(fewer.logical_and(kept).equal(fewer));
}

TEST(TimingStudy, ScoresDoNotDependOnTheBatch) {
  Fixture f;
  const auto two = f.study();
  f.options.batch = 5;
  const auto five = f.study();
  for (const char* half : {"rates", "dropped"}) {
    for (size_t line = 0; line < 5; ++line) {
      for (size_t point = 0; point < 6; ++point) {
        EXPECT_NEAR(mean(two[half]["lines"][line], point), mean(five[half]["lines"][line], point), 1e-3);
      }
    }
  }
}

TEST(TimingStudy, CanBeStoppedAndKeepsWholeBatches) {
  Fixture f;
  std::vector<int64_t> told;
  const auto none = study_timing(*f.model, f.clips, f.options, [](int64_t) { return false; });
  EXPECT_EQ(none["protocol"]["samples"], 0);
  EXPECT_TRUE(none["rates"]["lines"][0]["psnr_f01"]["mean"][0].is_null());
  const auto some = study_timing(*f.model, f.clips, f.options, [&](int64_t done) {
    told.push_back(done);
    return done < 3 * kTimingPoints;
  });
  EXPECT_EQ(some["protocol"]["samples"], 2);
  EXPECT_EQ(told.front(), 2);
  f.options.samples = 2;
  EXPECT_EQ(some["dropped"], f.study()["dropped"]);
}

TEST(TimingStudy, AsksTheDatasetForFinerClips) {
  data::register_dataset({"finer of a test", "", [](auto&, uint64_t) { return nullptr; },
                          [](const nlohmann::json& options, int64_t factor) {
                            return nlohmann::json{{"name", options["name"]}, {"rate", factor}};
                          }});
  EXPECT_EQ(finer_data({{"name", "finer of a test"}}), (nlohmann::json{{"name", "finer of a test"}, {"rate", 4}}));
  expect_error([] { finer_data({{"name", "folder"}}); }, {"moving-mnist, finer of a test", "'folder'"});
}

TEST(TimingStudy, ExplainsWhatItCannotDo) {
  expect_error([] { finer_data({{"name", "folder"}, {"path", "x"}}); }, {"[timing]", "moving-mnist", "not 'folder'"});
  EXPECT_NEAR(finer_data({{"name", "moving-mnist"}})["step"].get<double>(), 0.15 / 4, 1e-12);
  Fixture f;
  for (const nlohmann::json& core : {nlohmann::json{{"name", "convlstm"}, {"features", 8}},
                                     nlohmann::json{{"name", "transformer"}, {"features", 8}, {"heads", 2}}}) {
    f.model = models::make_model({{"encoder", {{"depths", {4, 8}}}}, {"decoder", {{"depths", {4, 8}}}}, {"core", core}},
                                 {1, 20, 20});
    expect_error([&] { f.study(); }, {"[timing]", "other intervals", "no time between frames", "convs5"});
  }
  f.options.context = 9;
  expect_error([&] { f.study(); }, {"[timing]", "longer than the context", "9"});
}

}  // namespace
}  // namespace convssm::evaluate
