// Pixels in 8 bits, and the paper's aggregation over chunks of samples.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/metrics/chunked.h"
#include "convssm/metrics/pixels.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

TEST(Pixels, AreTruncatedNotRounded) {
  const auto x = at::tensor({-1.0f, -0.999f, 0.0f, 0.999f, 1.0f, -3.0f, 3.0f, INFINITY, -INFINITY});
  const auto expected = at::tensor({0, 0, 127, 254, 255, 0, 255, 255, 0}, at::kByte);
  EXPECT_TRUE(at::equal(truncate_u8(x), expected));
}

TEST(Pixels, ConversionsAgree) {
  const auto x = (randn({3, 4, 5}, 1) * 0.7).to(at::kFloat);
  EXPECT_LT(distance(to_f01(x), at::clamp(x, -1, 1) * 0.5 + 0.5), 1e-7);
  const auto quantized = u8_to_f01(truncate_u8(x));
  EXPECT_EQ(quantized.scalar_type(), at::kFloat);
  EXPECT_GE((to_f01(x) - quantized).min().item<double>(), -1e-7);
  EXPECT_LE((to_f01(x) - quantized).max().item<double>(), 1 / 255.0 + 1e-7);
  EXPECT_EQ(u8_to_f01(at::tensor({0, 51, 255}, at::kByte))[1].item<float>(), 0.2f);
}

TEST(Pixels, ALevelMayComeBackOneLowerButNeverElse) {
  const auto levels = at::arange(256, at::kInt);
  const auto back = truncate_u8(levels.to(at::kFloat) / 127.5f - 1).to(at::kInt);
  const auto lost = levels - back;
  EXPECT_GE(lost.min().item<int>(), 0);
  EXPECT_LE(lost.max().item<int>(), 1);
  EXPECT_EQ(lost.sum().item<int>(), 63);
  EXPECT_EQ(back[0].item<int>(), 0);
  EXPECT_EQ(back[255].item<int>(), 255);
}

TEST(Pixels, RefuseWhatIsNotMeant) {
  expect_error([] { truncate_u8(at::tensor({0.0f, NAN})); }, {"[truncate_u8]", "NaN"});
  expect_error([] { to_f01(at::zeros({3}, at::kByte)); }, {"[to_f01]", "float"});
  expect_error([] { u8_to_f01(at::zeros({3})); }, {"[u8_to_f01]", "uint8", "float32"});
  expect_error([] { truncate_u8(at::Tensor()); }, {"undefined"});
}

TEST(ChunkedMean, IsTheMeanAndPopulationDeviationOfChunkMeans) {
  // Sample i has the value i + frame - 1, so chunk means are 1.5, 5.5, 9.5.
  const auto values = at::arange(12, at::kDouble).view({12, 1}) + at::tensor({-1.0, 0.0, 1.0});
  const ChunkedMean result = chunked_mean(values, 4);
  EXPECT_DOUBLE_EQ(result.mean, 5.5);
  EXPECT_DOUBLE_EQ(result.deviation, std::sqrt(32.0 / 3));
  EXPECT_EQ(result.samples, 12);
  EXPECT_EQ(result.chunks, 3);
}

TEST(ChunkedMean, PapersSizesGiveFourChunks) {
  const auto values = randn({1024, 5}, 3);
  const ChunkedMean result = chunked_mean(values);
  EXPECT_EQ(result.chunks, 4);
  const auto means = values.mean(1).view({4, 256}).mean(1);
  EXPECT_NEAR(result.mean, means.mean().item<double>(), 1e-14);
  EXPECT_NEAR(result.deviation, means.std(false).item<double>(), 1e-14);
}

TEST(ChunkedMean, ASmallLastChunkCountsByItsSize) {
  const auto values = at::tensor({1.0, 1.0, 1.0, 1.0, 6.0}).view({5, 1});
  const ChunkedMean result = chunked_mean(values, 4);
  EXPECT_DOUBLE_EQ(result.mean, 2);
  EXPECT_DOUBLE_EQ(result.deviation, 2);
  EXPECT_EQ(result.chunks, 2);
  EXPECT_EQ(chunked_mean(values, 100).deviation, 0);
}

TEST(ChunkedMean, RefusesInfinityAndWrongShapes) {
  expect_error([] { chunked_mean(at::full({2, 2}, INFINITY)); }, {"[chunked_mean]", "cap_psnr"});
  expect_error([] { chunked_mean(at::full({2, 2}, NAN)); }, {"[chunked_mean]", "NaN"});
  expect_error([] { chunked_mean(at::zeros({5})); }, {"[samples, frames]", "[5]"});
  expect_error([] { chunked_mean(at::zeros({5, 2}), 0); }, {"at least 1"});
  expect_error([] { chunked_mean(at::zeros({5, 2}, at::kInt)); }, {"floats"});
}

}  // namespace
}  // namespace convssm::metrics
