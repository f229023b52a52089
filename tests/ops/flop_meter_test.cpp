// The meter of arithmetic against counts by hand.
#include "convssm/ops/flop_meter.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/base/error.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"

namespace convssm::ops {
namespace {

TEST(FlopMeter, CountsAConvolutionByItsShape) {
  FlopMeter meter;
  ops::conv2d(at::zeros({2, 3, 5, 7}), at::zeros({11, 3, 3, 3}), at::zeros({11}));
  EXPECT_EQ(meter.count(), 2u * 2 * 5 * 7 * 11 * 3 * 3 * 3);
  ops::conv2d(at::zeros({1, 4, 5, 5}), at::zeros({6, 4, 2, 2}), {}, 2);  // 3 x 3 outputs
  EXPECT_EQ(meter.count(), 2u * 2 * 5 * 7 * 11 * 27 + 2u * 9 * 6 * 4 * 4);
  ASSERT_EQ(meter.convolutions().size(), 2u);
  const ConvolutionShape& second = meter.convolutions()[1];
  EXPECT_EQ(second.in, 4);
  EXPECT_EQ(second.out, 6);
  EXPECT_EQ(second.stride, 2);
  EXPECT_FALSE(second.bias);
  EXPECT_TRUE(meter.convolutions()[0].bias);
}

TEST(FlopMeter, KnowsWhichGradientsABackwardNeeds) {
  FlopMeter meter;
  const at::Tensor x = at::zeros({1, 2, 4, 4}), w = at::zeros({2, 2, 3, 3}).requires_grad_(true);
  const at::Tensor y = ops::conv2d(x, w);
  ops::conv2d(y, w);
  at::NoGradGuard no_grad;
  ops::conv2d(y, w);
  EXPECT_FALSE(meter.convolutions()[0].input_gradient);
  EXPECT_TRUE(meter.convolutions()[0].weight_gradient);
  EXPECT_TRUE(meter.convolutions()[1].input_gradient);
  EXPECT_FALSE(meter.convolutions()[2].weight_gradient);
}

TEST(FlopMeter, CountsEveryMatrixProductOnce) {
  FlopMeter meter;
  ops::dense(at::zeros({3, 5}), at::zeros({7, 5}), at::zeros({7}));
  EXPECT_EQ(meter.count(), 2u * 3 * 5 * 7);
  ops::dense(at::zeros({2, 5, 3, 3}), at::zeros({7, 5}));
  EXPECT_EQ(meter.count(), 2u * 3 * 5 * 7 + 2u * 18 * 5 * 7);
}

TEST(FlopMeter, SeesProductsOutsideOfTheDoors) {
  const auto count = [](const std::function<void()>& action) {
    FlopMeter meter;
    action();
    return meter.count();
  };
  EXPECT_EQ(count([] { at::bmm(at::zeros({4, 2, 3}), at::zeros({4, 3, 5})); }), 2u * 4 * 2 * 3 * 5);
  EXPECT_EQ(count([] { at::baddbmm(at::zeros({4, 2, 5}), at::zeros({4, 2, 3}), at::zeros({4, 3, 5})); }), 240u);
  EXPECT_EQ(count([] { at::matmul(at::zeros({4, 2, 3}), at::zeros({3, 5})); }), 240u);
  EXPECT_EQ(count([] { at::matmul(at::zeros({8, 3}), at::zeros({3, 5})); }), 240u);
  EXPECT_EQ(count([] { at::zeros({8, 3}) + at::ones({8, 3}); }), 0u);
}

TEST(FlopMeter, CountsNothingBeforeAndAfterItsLife) {
  at::mm(at::zeros({2, 2}), at::zeros({2, 2}));
  { FlopMeter meter; }
  ops::dense(at::zeros({3, 5}), at::zeros({7, 5}));
  FlopMeter meter;
  EXPECT_EQ(meter.count(), 0u);
  EXPECT_THROW(FlopMeter(), Error);
  at::mm(at::zeros({2, 2}), at::zeros({2, 2}));
  EXPECT_EQ(meter.count(), 16u);
}

}  // namespace
}  // namespace convssm::ops
