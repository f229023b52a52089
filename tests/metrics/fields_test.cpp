// Scores of fields against NumPy (tools/golden/make_fields.py, which compares itself with pysteps, properscoring, scores and
// xskillscore), and their laws.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/ensemble.h"
#include "convssm/metrics/events.h"
#include "convssm/metrics/field_errors.h"
#include "convssm/metrics/field_weights.h"
#include "convssm/metrics/openstl.h"
#include "convssm/metrics/ssim.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

struct FieldsGolden : ::testing::Test {
  io::NpzFile file{CONVSSM_SOURCE_DIR "/tests/golden/fields.npz"};
  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }

  at::Tensor truth = read("truth"), forecast = read("forecast"), members = read("members"), weights = read("weights");
};

double gap(const at::Tensor& ours, const at::Tensor& expected) {
  return testing::distance(ours, expected.to(at::kDouble));
}

at::Tensor with_nan(const at::Tensor& x, const at::Tensor& at_these) {
  return x.masked_fill(at_these, std::numeric_limits<float>::quiet_NaN());
}

TEST_F(FieldsGolden, WeightsAreOfLatitudesWherePixelsWereMeasured) {
  const at::Tensor latitudes = read("latitudes").contiguous();
  const auto* values = latitudes.data_ptr<double>();
  const at::Tensor rows = latitude_weights({values, values + latitudes.numel()});
  EXPECT_LT(gap(pixel_weights(truth, read("valid").to(at::kBool), rows), weights), 1e-12);
  EXPECT_EQ(latitude_weights({90, -90}).sum().item<double>(), 2);  // of poles alone there is nothing to choose
  testing::expect_error([] { latitude_weights({95}); }, {"[latitude_weights]", "95"});
}

TEST_F(FieldsGolden, ErrorsAreThoseOfNumpy) {
  const FieldErrors sums = field_errors(truth, forecast, weights);
  EXPECT_LT(gap(rmse(sums), read("rmse")), 1e-9);
  EXPECT_LT(gap(mae(sums), read("mae")), 1e-9);
  EXPECT_LT(gap(bias(sums), read("bias")), 1e-9);
  EXPECT_LT(gap(anomaly_correlation(truth, forecast, read("climatology"), weights), read("acc")), 1e-9);
}

TEST_F(FieldsGolden, EventsAreThoseOfNumpyAndPysteps) {
  const EventCounts n = event_counts(truth, forecast, 2, weights);
  EXPECT_LT(gap(at::stack({n.hits, n.misses, n.false_alarms, n.correct_negatives}), read("counts")), 1e-9);
  const at::Tensor windows = read("windows");
  for (int64_t i = 0; i < windows.numel(); ++i) {
    const auto window = windows[i].item<int64_t>();
    const auto score = [&](const at::Tensor& w) {
      return fss(fraction_sums(truth, forecast, 2, window, w).sum(0)).item<double>();
    };
    EXPECT_NEAR(score(weights), read("fss")[i].item<double>(), 1e-9) << window;
    EXPECT_NEAR(score({}), read("fss_all")[i].item<double>(), 1e-9) << window;
  }
}

TEST_F(FieldsGolden, EnsemblesAreThoseOfNumpyAndProperscoring) {
  EXPECT_LT(gap(crps_ensemble(truth, members, false), read("crps")), 1e-9);
  EXPECT_LT(gap(crps_ensemble(truth, members, true), read("crps_fair")), 1e-9);
  Stream stream(1, "ranks");
  const EnsembleSums sums = ensemble_sums(truth, members, stream, weights).sum(0);
  EXPECT_NEAR(mean_crps(sums).item<double>(), number("mean_crps"), 1e-9);
  EXPECT_NEAR(mean_crps_fair(sums).item<double>(), number("mean_crps_fair"), 1e-9);
  EXPECT_NEAR(spread(sums).item<double>(), number("spread"), 1e-9);
  EXPECT_NEAR(skill(sums).item<double>(), number("skill"), 1e-9);
}

TEST_F(FieldsGolden, SsimOfOpenstlIsThatOfADataRangeOfTwo) {
  const at::Tensor x = read("ssim_truth"), y = read("ssim_forecast");
  EXPECT_NEAR(ssim_openstl(x, y).item<double>(), number("ssim_openstl"), 1e-9);
  EXPECT_GT(ssim_openstl(x, y).item<double>(), ssim_uniform7(x, y).item<double>());
  testing::expect_error([&] { ssim_openstl(x, 2 * y); }, {"[ssim_openstl]", "[0,1]"});
}

TEST_F(FieldsGolden, WhatWasNotMeasuredMayBeAnything) {
  const at::Tensor none = weights == 0, x = with_nan(truth, none), y = with_nan(forecast, none);
  Stream a(1), b(1);
  EXPECT_LT(gap(rmse(field_errors(x, y, weights)), read("rmse")), 1e-9);
  EXPECT_LT(gap(anomaly_correlation(x, y, with_nan(read("climatology"), none), weights), read("acc")), 1e-9);
  EXPECT_LT(gap(fss(fraction_sums(x, y, 2, 3, weights)), fss(fraction_sums(truth, forecast, 2, 3, weights))), 1e-12);
  const EnsembleSums sums = ensemble_sums(x, with_nan(members, none.unsqueeze(0)), a, weights);
  EXPECT_LT(gap(mean_crps(sums), mean_crps(ensemble_sums(truth, members, b, weights))), 1e-12);
}

TEST_F(FieldsGolden, AllMeasuredIsNoMaskAndWeightsOfOneAreNone) {
  const at::Tensor all = pixel_weights(truth, at::ones(truth.sizes(), at::kBool), at::ones({truth.size(-2)}));
  EXPECT_EQ(gap(rmse(field_errors(truth, forecast, all)), rmse(field_errors(truth, forecast))), 0);
  EXPECT_EQ(gap(csi(event_counts(truth, forecast, 2, all)), csi(event_counts(truth, forecast, 2))), 0);
  EXPECT_EQ(gap(fss(fraction_sums(truth, forecast, 2, 3, all)), fss(fraction_sums(truth, forecast, 2, 3))), 0);
  const at::Tensor usual = read("climatology");
  EXPECT_EQ(gap(anomaly_correlation(truth, forecast, usual, all), anomaly_correlation(truth, forecast, usual)), 0);
}

TEST_F(FieldsGolden, APerfectForecastIsPerfect) {
  const FieldErrors sums = field_errors(truth, truth, weights);
  EXPECT_EQ(rmse(sums).max().item<double>(), 0);
  EXPECT_EQ(bias(sums).abs().max().item<double>(), 0);
  const at::Tensor one = at::ones({2}, at::kDouble);
  EXPECT_LT(gap(anomaly_correlation(truth, truth, read("climatology"), weights), one), 1e-12);
  const EventCounts n = event_counts(truth, truth, 2, weights);
  EXPECT_EQ(gap(csi(n), one) + gap(pod(n), one) + gap(frequency_bias(n), one) + far(n).max().item<double>(), 0);
  EXPECT_LT(gap(fss(fraction_sums(truth, truth, 2, 3, weights)), one), 1e-12);
}

TEST_F(FieldsGolden, SumsOfClipsAddUp) {
  FieldErrors all;
  EnsembleSums futures;
  Stream stream(1);
  for (int64_t i = 0; i < 2; ++i) {
    all.add(field_errors(truth[i], forecast[i], weights[i]));
    futures.add(ensemble_sums(truth[i], members.select(1, i), stream, weights[i]));
  }
  EXPECT_NEAR(rmse(all).item<double>(), rmse(field_errors(truth, forecast, weights).sum(0)).item<double>(), 1e-12);
  EXPECT_NEAR(mean_crps(futures).item<double>(), number("mean_crps"), 1e-9);
}

TEST_F(FieldsGolden, AnEnsembleOfOneIsAForecast) {
  Stream stream(1);
  const EnsembleSums sums = ensemble_sums(truth, forecast.unsqueeze(0), stream, weights);
  const FieldErrors errors = field_errors(truth, forecast, weights);
  EXPECT_LT(gap(mean_crps(sums), mae(errors)), 1e-12);
  EXPECT_LT(gap(skill(sums), rmse(errors)), 1e-12);
  EXPECT_TRUE(at::isnan(spread(sums)).all().item<bool>());
  EXPECT_TRUE(at::isnan(mean_crps_fair(sums)).all().item<bool>());
}

TEST(Events, ScoresWithNothingToDivideAreNotNumbers) {
  const at::Tensor dry = at::zeros({4, 5}), wet = at::ones({4, 5});
  const EventCounts none = event_counts(dry, dry, 0.5), false_alarm = event_counts(dry, wet, 0.5);
  for (const auto& score : {csi(none), pod(none), far(none), frequency_bias(none), pod(false_alarm)}) {
    EXPECT_TRUE(std::isnan(score.item<double>()));
  }
  EXPECT_TRUE(std::isnan(fss(fraction_sums(dry, dry, 0.5, 3)).item<double>()));
  EXPECT_EQ(csi(false_alarm).item<double>(), 0);
  EXPECT_EQ(far(false_alarm).item<double>(), 1);
  EXPECT_TRUE(std::isinf(frequency_bias(false_alarm).item<double>()));
  EXPECT_EQ(event_counts(wet, wet, 1).hits.item<double>(), 20);  // at the threshold is an event
}

// Members and truth of one distribution, with many equal values, as dry pixels of rain are.
TEST(Ensembles, OfOneDistributionHaveFlatRanksAndAsMuchSpreadAsSkill) {
  const at::Tensor draws = testing::randn({6, 200, 200}, 3).clamp_min(0);
  Stream stream(2, "ranks");
  const EnsembleSums sums = ensemble_sums(draws[5], draws.slice(0, 0, 5), stream);
  const at::Tensor histogram = rank_histogram(sums);
  EXPECT_NEAR(histogram.sum().item<double>(), 1, 1e-12);
  EXPECT_LT(gap(histogram, at::full({6}, 1.0 / 6)), 0.01);
  EXPECT_NEAR((spread(sums) / skill(sums)).item<double>(), 1, 0.02);
  EXPECT_NEAR(mean_crps_fair(sums).item<double>(), (draws[0] - draws[1]).abs().mean().item<double>() / 2, 0.005);
}

TEST(Ensembles, ATieIsBrokenByTheStreamAlone) {
  const at::Tensor truth = at::zeros({1, 64}), members = at::zeros({3, 1, 64});
  Stream a(5), b(5);
  const at::Tensor found = ranks(truth, members, a);
  EXPECT_TRUE(found.equal(ranks(truth, members, b)));
  EXPECT_EQ(found.min().item<int64_t>(), 0);
  EXPECT_EQ(found.max().item<int64_t>(), 3);
  Stream c(5);
  EXPECT_EQ(ranks(truth, members - 1, c).min().item<int64_t>(), 3);
}

}  // namespace
}  // namespace convssm::metrics
