// Frames of half the size: against libtorch, its gradients, its edges.
#include "convssm/ops/resize.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::randn;

TEST(HalfSize, MatchesLibtorchInBothLayouts) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 1, 2, 2}, {3, 5, 4, 6}, {2, 32, 64, 32}}) {
    const at::Tensor x = randn(shape, 1);
    for (const at::Tensor& laid_out : {x, x.contiguous(at::MemoryFormat::ChannelsLast)}) {
      EXPECT_LT(distance(half_size(laid_out), half_size_plain(x)), 1e-15);
      EXPECT_LT(distance(half_size(laid_out.to(at::kFloat)).to(at::kDouble), half_size_plain(x)), 1e-6);
    }
  }
  EXPECT_TRUE(half_size(randn({2, 3, 4, 4}, 1)).is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(HalfSize, GradientsInFloat64) {
  const auto x = randn({2, 3, 4, 6}, 1), w = randn({2, 3, 2, 3}, 2);
  EXPECT_LT(gradient_error([&] { return (half_size(x) * w).sum(); }, {x}), 1e-8);
}

TEST(HalfSize, RefusesOddFrames) {
  expect_error([] { half_size(at::ones({1, 1, 3, 4})); }, {"[half_size]", "even", "[1,1,3,4]"});
}

}  // namespace
}  // namespace convssm::ops::testing
