// Depthwise convolution as an operation: values, gradients, arithmetic, bad use.
#include "convssm/ops/depthwise.h"

#include "convssm/ops/flop_meter.h"
#include "tests/support.h"

namespace convssm::ops {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::randn;

// By definition: a sum over taps, channel by channel.
at::Tensor summed_taps(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  const int64_t kh = w.size(2), kw = w.size(3);
  const at::Tensor padded = at::constant_pad_nd(x, {kw / 2, kw / 2, kh / 2, kh / 2});
  at::Tensor y = at::zeros_like(x) + bias.view({1, -1, 1, 1});
  for (int64_t tap = 0; tap < kh * kw; ++tap) {
    const at::Tensor shifted = padded.narrow(2, tap / kw, x.size(2)).narrow(3, tap % kw, x.size(3));
    y = y + shifted * w.select(2, tap / kw).select(2, tap % kw).view({1, -1, 1, 1});
  }
  return y;
}

TEST(Depthwise, IsASumOverTapsInBothTypes) {
  for (const auto& [kh, kw] : {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {7, 7}, {1, 9}, {5, 3}}) {
    const at::Tensor x = randn({2, 6, 4, 5}, 1), w = randn({6, 1, kh, kw}, 2), bias = randn({6}, 3);
    const at::Tensor expected = summed_taps(x, w, bias);
    EXPECT_LT(distance(depthwise_conv2d(x, w, bias), expected), 1e-12);
    const at::Tensor single = depthwise_conv2d(x.to(at::kFloat), w.to(at::kFloat), bias.to(at::kFloat));
    EXPECT_LT(distance(single.to(at::kDouble), expected), 1e-4);
  }
}

TEST(Depthwise, GradientsAreThoseOfFiniteDifferences) {
  const at::Tensor x = randn({2, 3, 3, 4}, 1), w = randn({3, 1, 3, 3}, 2), bias = randn({3}, 3),
                   g = randn(x.sizes(), 4);
  EXPECT_LT(gradient_error([&] { return (depthwise_conv2d(x, w, bias) * g).sum(); }, {x, w, bias}), 1e-8);
}

TEST(Depthwise, CountsOneProductPerTapAndChannel) {
  FlopMeter meter;
  depthwise_conv2d(at::zeros({2, 6, 4, 5}), at::zeros({6, 1, 3, 3}), at::zeros({6}));
  EXPECT_EQ(meter.count(), 2u * 2 * 4 * 5 * 6 * 9);
  EXPECT_EQ(meter.convolutions().at(0).groups, 6);
}

TEST(Depthwise, BadUse) {
  const at::Tensor x = at::ones({1, 6, 4, 4});
  expect_error([&] { depthwise_conv2d(x, at::ones({6, 1, 4, 4})); }, {"[depthwise_conv2d]", "odd", "[6,1,4,4]"});
  expect_error([&] { depthwise_conv2d(x, at::ones({5, 1, 3, 3})); }, {"[6,1,kh,kw]", "[5,1,3,3]"});
  expect_error([&] { depthwise_conv2d(x, at::ones({6, 6, 3, 3})); }, {"[6,1,kh,kw]", "[6,6,3,3]"});
  expect_error([&] { depthwise_conv2d(x[0], at::ones({6, 1, 3, 3})); }, {"[N,C,H,W]", "[6,4,4]"});
  expect_error([&] { depthwise_conv2d(x, at::ones({6, 1, 3, 3}), at::ones({5})); }, {"bias", "[5]"});
}

}  // namespace
}  // namespace convssm::ops
