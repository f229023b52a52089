// PSNR, SSIM and pixel sums of frames: shapes, laws, identical frames, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/metrics/pixel_sums.h"
#include "convssm/metrics/pixels.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/ops/isa.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor frames(at::IntArrayRef shape, uint64_t seed) { return randn(shape, seed).sigmoid().to(at::kFloat); }

TEST(Psnr, IsMinusTenLogOfTheMeanSquare) {
  const auto truth = at::full({2, 3, 4, 5}, 0.25f);
  auto forecast = truth.clone();
  forecast[0] += 0.5f;                // every value: 0.25
  forecast[1].view({-1})[0] += 0.5f;  // one of 60 values
  const auto psnr = psnr_f01(truth, forecast);
  ASSERT_EQ(psnr.sizes(), at::IntArrayRef({2}));
  EXPECT_NEAR(psnr[0].item<double>(), -10 * std::log10(0.25), 1e-12);
  EXPECT_NEAR(psnr[1].item<double>(), -10 * std::log10(0.25 / 60), 1e-12);
}

TEST(Psnr, MatchesTensorOperationsForAnyShape) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{1, 1, 1}, {3, 7, 5}, {4, 3, 9, 8}, {2, 5, 1, 13, 11}}) {
    const auto x = frames(shape, 1), y = frames(shape, 2);
    const auto expected = -10 * at::log10((x.to(at::kDouble) - y.to(at::kDouble)).square().mean({-3, -2, -1}));
    EXPECT_LT(distance(psnr_f01(x, y), expected), 1e-10);
  }
}

TEST(Psnr, IdenticalFramesAreInfiniteAndCappedOnlyOnRequest) {
  const auto x = frames({3, 1, 4, 4}, 1);
  auto y = x.clone();
  y[1].view({-1})[0] = 1 - y[1].view({-1})[0];
  const auto psnr = psnr_f01(x, y);
  EXPECT_EQ(psnr[0].item<double>(), kInfinity);
  EXPECT_LT(psnr[1].item<double>(), psnr_cap_db);
  EXPECT_EQ(psnr[2].item<double>(), kInfinity);

  const CappedPsnr capped = cap_psnr(psnr);
  EXPECT_EQ(capped.infinite, 2);
  EXPECT_EQ(capped.values[0].item<double>(), 100);
  EXPECT_EQ(capped.values[1].item<double>(), psnr[1].item<double>());
  EXPECT_EQ(cap_psnr(at::tensor({130.0, 20.0})).infinite, 0);
  EXPECT_EQ(cap_psnr(at::tensor({130.0, 20.0})).values[0].item<double>(), 100);
  expect_error([&] { cap_psnr(psnr, kInfinity); }, {"[cap_psnr]", "finite"});
}

TEST(Ssim, MatchesThePlainReferenceForAnyShape) {
  const std::vector<std::vector<int64_t>> shapes{{1, 11, 11}, {2, 11, 30}, {3, 3, 27, 12}, {2, 2, 1, 64, 64}};
  for (const std::string& isa : ops::isa_names()) {
    ops::force_isa(isa);
    for (const auto& shape : shapes) {
      const auto x = frames(shape, 1), y = (0.7f * x + 0.3f * frames(shape, 2));
      const auto ssim = ssim_gauss11(x, y);
      ASSERT_EQ(ssim.sizes(), x.sizes().slice(0, x.dim() - 3));
      EXPECT_LT(distance(ssim, ssim_gauss11_plain(x, y)), 1e-12) << isa;
      EXPECT_LT(distance(ssim_uniform7(x, y), ssim_uniform7_plain(x, y)), 1e-12) << isa;
    }
  }
  ops::force_isa("");
}

TEST(Ssim, IsOneForIdenticalFramesAndSymmetric) {
  const auto x = frames({4, 3, 20, 24}, 1), y = frames({4, 3, 20, 24}, 2);
  EXPECT_LT(distance(ssim_gauss11(x, x), at::ones({4}, at::kDouble)), 1e-12);
  EXPECT_LT(distance(ssim_gauss11(x, y), ssim_gauss11(y, x)), 1e-14);
  EXPECT_LT(ssim_gauss11(x, y).max().item<double>(), 0.5);
}

TEST(Ssim, DoesNotDependOnTheThreadsOrTheLayout) {
  const auto x = frames({7, 3, 16, 18}, 1), y = frames({7, 3, 16, 18}, 2);
  const auto channels_last = [](const at::Tensor& t) { return t.contiguous(at::MemoryFormat::ChannelsLast); };
  EXPECT_EQ(distance(ssim_gauss11(x, y), ssim_gauss11(channels_last(x), channels_last(y))), 0);
  EXPECT_EQ(distance(psnr_f01(x, y), psnr_f01(channels_last(x), channels_last(y))), 0);
  const int threads = at::get_num_threads();
  const auto many = ssim_gauss11(x, y);
  at::set_num_threads(1);
  EXPECT_EQ(distance(ssim_gauss11(x, y), many), 0);
  at::set_num_threads(threads);
}

TEST(FrameMetrics, RefuseOtherRangesAndNaN) {
  const auto good = frames({2, 1, 12, 12}, 1);
  const auto with = [&](float value) {
    auto x = good.clone();
    x.view({-1})[77] = value;
    return x;
  };
  using Metric = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
  const std::vector<std::pair<std::string, Metric>> metrics{{"[psnr_f01]", psnr_f01},
                                                            {"[ssim_gauss11]", ssim_gauss11},
                                                            {"[ssim_uniform7]", ssim_uniform7},
                                                            {"[mse_sum]", mse_sum},
                                                            {"[mae_sum]", mae_sum}};
  for (const auto& [name, metric] : metrics) {
    expect_error([&, m = metric] { m(with(-0.001f), good); }, {name, "truth", "[0,1]", "-0.001", "truncate_u8"});
    expect_error([&, m = metric] { m(good, with(255)); }, {name, "forecast", "[0,1]", "255"});
    expect_error([&, m = metric] { m(good, with(std::nanf(""))); }, {name, "forecast", "NaN"});
    expect_error([&, m = metric] { m(with(std::nanf("")), good); }, {name, "truth", "NaN"});
    expect_error([&, m = metric] { m(good, with(INFINITY)); }, {name, "forecast", "inf"});
    expect_error([&, m = metric] { m(good, good.to(at::kByte)); }, {name, "forecast", "float32", "u8_to_f01"});
    expect_error([&, m = metric] { m(good, good[0]); }, {name, "[2,1,12,12]", "[1,12,12]"});
    expect_error([&, m = metric] { m(good[0][0], good[0][0]); }, {name, "[...,C,H,W]", "[12,12]"});
    expect_error([&, m = metric] { m(at::Tensor(), good); }, {name, "undefined"});
    expect_error([&, m = metric] { m(good.narrow(0, 0, 0), good.narrow(0, 0, 0)); }, {name, "[0,1,12,12]"});
    EXPECT_EQ(metric(with(0), with(1)).dim(), 1);
  }
}

TEST(Ssim, RefusesFramesSmallerThanTheWindow) {
  const auto x = frames({1, 10, 40}, 1);
  expect_error([&] { ssim_gauss11(x, x); }, {"[ssim_gauss11]", "11x11", "10x40"});
  EXPECT_EQ(ssim_uniform7(x, x).dim(), 0);
  const auto y = frames({1, 40, 6}, 1);
  expect_error([&] { ssim_uniform7(y, y); }, {"[ssim_uniform7]", "7x7", "40x6"});
}

TEST(PsnrU8, TakesBytesOnlyAndDoesNotWrapAround) {
  const auto dark = at::zeros({2, 1, 4, 4}, at::kByte), bright = at::full({2, 1, 4, 4}, 255, at::kByte);
  EXPECT_EQ(psnr_u8(dark, bright)[1].item<double>(), 0);
  EXPECT_EQ(psnr_u8(bright, dark)[0].item<double>(), 0);
  const auto x = at::randint(0, 256, {3, 3, 9, 7}, at::kByte), y = at::randint(0, 256, {3, 3, 9, 7}, at::kByte);
  EXPECT_LT(distance(psnr_u8(x, y), psnr_f01(u8_to_f01(x), u8_to_f01(y))), 1e-6);
  expect_error([&] { psnr_u8(x, u8_to_f01(y)); }, {"[psnr_u8]", "forecast", "uint8", "truncate_u8"});
  expect_error([&] { psnr_u8(x.to(at::kLong), y); }, {"[psnr_u8]", "truth", "uint8"});
}

}  // namespace
}  // namespace convssm::metrics
