// Rotary positions on a line: products depend on differences of positions alone.
#include "convssm/nn/rotary.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support.h"

namespace convssm::nn {
namespace {

TEST(Rotary, ProductsOnALineDependOnDifferences) {
  const at::Tensor q = testing::randn({1, 8}, 1), k = testing::randn({1, 8}, 2);
  const auto turned = [](const at::Tensor& x, int64_t position) {
    const at::Tensor angles = line_angles(at::full({1}, position, at::kLong), 2, 50);
    return rotate_neighbours(x, angles.cos(), angles.sin());
  };
  const auto product = [&](int64_t a, int64_t b) { return (turned(q, a) * turned(k, b)).sum().item<double>(); };
  EXPECT_NEAR(product(7, 3), product(1000004, 1000000), 1e-8);
  EXPECT_GT(std::abs(product(7, 3) - product(7, 2)), 1e-3);
  EXPECT_TRUE(turned(q, 9).slice(1, 4).equal(q.slice(1, 4))) << "channels beyond the pairs stay";
  EXPECT_NEAR(line_angles(at::full({1}, 3, at::kLong), 3, 49)[0][1].item<double>(), 3 / 7.0, 1e-12);
}

}  // namespace
}  // namespace convssm::nn
