// Metrics by name, the weights they need, and the set of metrics for given clips.
#include "convssm/metrics/registry.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/metrics/metric_set.h"
#include "convssm/report/sections.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::expect_error;

const ClipSize kSmallGrey{20, 1, 16, 16, true};

std::vector<std::string> names_of(const MetricSet& set) {
  std::vector<std::string> names;
  for (const auto& entry : set.frame_metrics()) names.push_back(entry.info->name);
  return names;
}

TEST(MetricRegistry, EveryMetricSaysWhatItIs) {
  EXPECT_EQ(all_metrics().size(), 14u);
  for (const MetricInfo& metric : all_metrics()) {
    EXPECT_EQ(&find_metric(metric.name), &metric);
    EXPECT_FALSE(metric.definition.empty() || metric.input.empty() || metric.reference.empty()) << metric.name;
    EXPECT_TRUE(metric.better == 1 || metric.better == -1) << metric.name;
    for (const std::string& weights : metric.weights) EXPECT_FALSE(find_weights(weights).steps.empty()) << weights;
  }
  expect_error([] { find_metric("ssim"); }, {"unknown metric 'ssim'", "ssim_gauss11"});
  expect_error([] { find_metric("lpips_alx"); }, {"did you mean 'lpips_alex'?"});
}

// The report knows nothing of tensors, and so not of this list.
TEST(MetricRegistry, TheReportShowsEachAsItIs) {
  for (const MetricInfo& metric : all_metrics()) {
    const report::MetricStyle style = report::metric_style(metric.name);
    EXPECT_EQ(style.better, metric.better) << metric.name;
    EXPECT_EQ(style.decimals, metric.digits) << metric.name;
  }
}

// What a metric returns for its perfect and for a worse forecast fits what it says of itself.
TEST(MetricRegistry, BetterIsBetter) {
  const at::Tensor truth = testing::randn({2, 1, 16, 16}, 1).sigmoid().mul(255).to(at::kByte);
  const at::Tensor near = truth.clamp_max(200), far = at::zeros_like(truth);
  for (const MetricInfo& metric : all_metrics()) {
    if (!metric.weights.empty()) continue;
    const FrameMetric score = metric.make(WeightFolder("/nonexistent"));
    const auto mean = [&](const at::Tensor& x) {
      const auto as_input = [&](const at::Tensor& y) { return metric.bytes ? y : y.to(at::kFloat) / 255; };
      return score(as_input(truth), as_input(x)).mean().item<double>();
    };
    EXPECT_GT(metric.better * mean(near), metric.better * mean(far)) << metric.name;
  }
}

TEST(MetricSet, AllMeansWhatFitsAndIsAtHand) {
  const MetricSet set({}, WeightFolder("/nonexistent"), kSmallGrey);
  EXPECT_EQ(names_of(set),
            (std::vector<std::string>{"psnr_f01", "psnr_u8", "ssim_gauss11", "ssim_uniform7", "mse_sum", "mae_sum"}));
  EXPECT_EQ(set.i3d(), nullptr);
  ASSERT_EQ(set.left_out().size(), 4u);
  EXPECT_NE(set.left_out()[0].find("lpips_squeeze: it takes frames from 32x32 on"), std::string::npos);
  EXPECT_NE(set.left_out()[3].find("fvd_i3d: its weights 'i3d' are not in /nonexistent"), std::string::npos);
  EXPECT_TRUE(set.description().contains("ssim_uniform7"));

  EXPECT_FALSE(set.description().contains("ssim_openstl"));
  EXPECT_EQ(names_of(MetricSet({"mse_openstl"}, WeightFolder("/nonexistent"), kSmallGrey)),
            (std::vector<std::string>{"mse_openstl"}));

  const MetricSet floats({}, WeightFolder("/nonexistent"), {5, 2, 8, 16, false});
  EXPECT_EQ(names_of(floats), (std::vector<std::string>{"psnr_f01", "ssim_uniform7", "mse_sum", "mae_sum"}));
}

TEST(MetricSet, WhatIsAskedForMustBeThere) {
  const WeightFolder none("/nonexistent");
  EXPECT_EQ(names_of(MetricSet({"mae_sum", "mae_sum", "psnr_u8"}, none, kSmallGrey)),
            (std::vector<std::string>{"mae_sum", "psnr_u8"}));
  expect_error([&] { MetricSet({"ssim_gauss11"}, none, {1, 1, 8, 8}); }, {"[ssim_gauss11]", "11x11", "8x8"});
  expect_error([&] { MetricSet({"psnr_u8"}, none, {1, 1, 8, 8, false}); }, {"[psnr_u8]", "8-bit"});
  expect_error([&] { MetricSet({"fvd_i3d"}, none, {9, 1, 64, 64}); }, {"[fvd_i3d]", "10 frames", "9"});
  expect_error(
      [&] {
        MetricSet({"fvd_i3d"}, none, {16, 1, 64, 64});
      },
      {"i3d_rgb_scratch.safetensors", "/nonexistent", "git clone", "convssm weights import i3d"});
  expect_error([&] { MetricSet({"lpips_vgg"}, none, {1, 3, 64, 64}); }, {"vgg16", "vgg16-397923af.pth"});
  expect_error([&] { MetricSet({"lpips_vgg"}, none, {1, 2, 64, 64}); }, {"1 or 3 channels", "2"});
}

TEST(WeightFolder, IsTheOneGivenThenThatOfTheEnvironmentThenTheUsers) {
  EXPECT_EQ(WeightFolder("a").folder(), "a");
  setenv("CONVSSM_WEIGHTS", "/b", 1);
  EXPECT_EQ(WeightFolder("a").folder(), "a");
  EXPECT_EQ(WeightFolder().folder(), "/b");
  unsetenv("CONVSSM_WEIGHTS");
  setenv("XDG_DATA_HOME", "/c", 1);
  EXPECT_EQ(WeightFolder().folder(), "/c/convssm/weights");
  unsetenv("XDG_DATA_HOME");
  EXPECT_TRUE(WeightFolder().folder().ends_with("/.local/share/convssm/weights"));
  expect_error([] { WeightFolder("a").path("i3"); }, {"unknown weights 'i3'", "did you mean 'i3d'?"});
}

}  // namespace
}  // namespace convssm::metrics
