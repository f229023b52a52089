// Convolutions of stride 2 without SAME padding, and transposed ones, against their definitions; they are adjoint.
#include "convssm/ops/strided_conv.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/conv2d.h"
#include "convssm/ops/flop_meter.h"
#include "tests/support.h"

namespace convssm::ops {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

// Every pixel of x paints a kernel, [N,C,H,W] with [C,O,kh,kw].
at::Tensor painted(const at::Tensor& x, const at::Tensor& w, int64_t stride, int64_t padding) {
  const int64_t H = (x.size(2) - 1) * stride + w.size(2), W = (x.size(3) - 1) * stride + w.size(3);
  at::Tensor y = at::zeros({x.size(0), w.size(1), H, W}, x.options());
  for (int64_t i = 0; i < x.size(2); ++i) {
    for (int64_t j = 0; j < x.size(3); ++j) {
      const at::Tensor kernels = at::einsum("nc,cohw->nohw", {x.select(2, i).select(2, j), w});
      y.narrow(2, i * stride, w.size(2)).narrow(3, j * stride, w.size(3)).add_(kernels);
    }
  }
  return y.slice(2, padding, H - padding).slice(3, padding, W - padding);
}

TEST(StridedConv, TransposedIsWhatPixelsPaint) {
  for (const auto& [height, width, padding] : {std::tuple{1, 1, 0}, {1, 3, 0}, {4, 3, 0}, {4, 3, 1}}) {
    const at::Tensor x = randn({2, 3, height, width}, 1), w = randn({3, 2, 5, 4}, 2), b = randn({2}, 3);
    const at::Tensor expected = painted(x, w, 2, padding) + b.view({1, -1, 1, 1});
    EXPECT_LT(distance(transposed_conv2d(x, w, b, 2, padding), expected), 1e-12) << height << " x " << width;
  }
}

// <conv(x), y> = <x, transposed(y)> where the stride leaves nothing out.
TEST(StridedConv, IsTheAdjoint) {
  for (const int64_t padding : {0, 1}) {
    const at::Tensor w = randn({3, 2, 4, 4}, 4), none = at::zeros({3}, at::kDouble), zero = at::zeros({2}, at::kDouble);
    const at::Tensor x = randn({2, 2, 10, 8}, 5), y = strided_conv2d(x, w, none, 2, padding);
    EXPECT_EQ(y.size(2), (10 + 2 * padding - 4) / 2 + 1);
    const at::Tensor other = randn(y.sizes(), 6);
    const double left = (y * other).sum().item<double>(),
                 right = (x * painted(other, w, 2, padding)).sum().item<double>();
    EXPECT_NEAR(left, right, 1e-10 * (1 + std::abs(left)));
    EXPECT_NEAR((x * transposed_conv2d(other, w, zero, 2, padding)).sum().item<double>(), right,
                1e-10 * (1 + std::abs(left)));
  }
}

// The one of ops/conv2d.h, which takes the pixels out first; few channels, sizes that the stride does not divide.
TEST(StridedConv, KernelsOfOnePixelSeeEverySecond) {
  for (const int64_t stride : {2, 3}) {
    at::Tensor x = randn({3, 2, 7, 10}, 1).requires_grad_(), w = randn({4, 2, 1, 1}, 2).requires_grad_();
    const at::Tensor y = conv2d(x, w, {}, stride);
    const at::Tensor seen = x.slice(2, 0, 7, stride).slice(3, 0, 10, stride);
    const at::Tensor expected = at::einsum("ncij,oc->noij", {seen, w.flatten(1)}), weights = randn(expected.sizes(), 3);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_LT(distance(y, expected), 1e-12);
    const auto found = torch::autograd::grad({(y * weights).sum()}, {x, w});
    const auto right = torch::autograd::grad({(expected * weights).sum()}, {x, w});
    for (size_t i = 0; i < 2; ++i) EXPECT_LT(distance(found[i], right[i]), 1e-12) << i;
  }
}

TEST(StridedConv, IsCounted) {
  const at::Tensor x = at::zeros({2, 3, 10, 8}), w = at::zeros({5, 3, 4, 4}), b = at::zeros({5});
  FlopMeter meter;
  strided_conv2d(x, w, b, 2);
  EXPECT_EQ(meter.count(), 2u * 2 * 4 * 3 * 5 * 3 * 16);
  const uint64_t before = meter.count();
  transposed_conv2d(at::zeros({2, 5, 1, 1}), w, at::zeros({3}), 2);
  EXPECT_EQ(meter.count() - before, 2u * 2 * 5 * 3 * 16);
}

TEST(StridedConv, RefusesWhatDoesNotFit) {
  const at::Tensor x = at::zeros({2, 3, 3, 8}), w = at::zeros({5, 3, 4, 4}), b = at::zeros({5});
  expect_error([&] { strided_conv2d(x, w, b, 2); }, {"[strided_conv2d]", "as large as the kernel"});
  expect_error([&] { strided_conv2d(at::zeros({2, 4, 8, 8}), w, b, 2); }, {"4 channels", "[5,3,4,4]"});
  expect_error([&] { transposed_conv2d(x, w, b, 2); }, {"[transposed_conv2d]", "3 channels"});
}

}  // namespace
}  // namespace convssm::ops
