// The fused AdamW against plain operations in float64 and against libtorch's own.
#include "convssm/ops/adamw.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::randn;

TEST(AdamW, MatchesPlainOperations) {
  for (const int64_t size : {1, 7, 1000, 100'003}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const auto start = [&](uint64_t seed) { return randn({size}, seed).to(type); };
      at::Tensor p = start(1), m = start(2), v = start(3).square();
      at::Tensor q = p.to(at::kDouble), mq = m.to(at::kDouble), vq = v.to(at::kDouble);
      for (int64_t t = 1; t <= 3; ++t) {
        const AdamWStep step{0.1 * static_cast<double>(t), 0.8, 0.95, 1e-6, 0.02, t};
        const at::Tensor g = start(10 + static_cast<uint64_t>(t));
        adamw_(p, g, m, v, step, 0.5);
        adamw_plain_(q, g.to(at::kDouble), mq, vq, step, 0.5);
      }
      const double bound = type == at::kFloat ? 3e-6 : 1e-13;
      EXPECT_LT(distance(p.to(at::kDouble), q), 10 * bound) << size;
      EXPECT_LT(distance(m.to(at::kDouble), mq), bound);
      EXPECT_LT(distance(v.to(at::kDouble), vq), bound);
    }
  }
}

TEST(AdamW, MatchesLibtorch) {
  at::Tensor p = randn({33}, 1), m = at::zeros_like(p), v = at::zeros_like(p);
  const at::Tensor theirs = p.clone().requires_grad_(true);
  const auto options = torch::optim::AdamWOptions(0.01).betas({0.7, 0.9}).eps(1e-7).weight_decay(0.3);
  torch::optim::AdamW optimizer({theirs}, options);
  for (int64_t t = 1; t <= 4; ++t) {
    const at::Tensor g = randn({33}, 5 + static_cast<uint64_t>(t));
    theirs.mutable_grad() = g;
    optimizer.step();
    adamw_(p, g, m, v, {0.01, 0.7, 0.9, 1e-7, 0.3, t});
  }
  EXPECT_LT(distance(p, theirs.detach()), 1e-13);
}

TEST(AdamW, RefusesWhatDoesNotFit) {
  at::Tensor p = at::ones({2, 3}), m = at::ones({2, 3}), v = at::ones({2, 3});
  expect_error([&] { adamw_(p, at::ones({3, 2}), m, v, {}); }, {"[adamw]", "g", "[2,3]", "[3,2]"});
  expect_error([&] { adamw_(p, at::ones({3, 2}).t(), m, v, {}); }, {"g must be contiguous"});
  expect_error([&] { adamw_(p, at::ones({2, 3}, at::kDouble), m, v, {}); }, {"g", "float64"});
}

TEST(SquareSum, IsThatOfFloat64AndShowsWhatIsNotFinite) {
  for (const int64_t size : {1, 15, 1025, 200'001}) {
    const at::Tensor x = (randn({size}, 3) * 1e3).to(at::kFloat);
    const double exact = x.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(square_sum(x), exact, 1e-6 * exact) << size;
  }
  at::Tensor x = at::ones({5000});
  x[4321] = NAN;
  EXPECT_TRUE(std::isnan(square_sum(x)));
  x[4321] = INFINITY;
  EXPECT_TRUE(std::isinf(square_sum(x)));
  EXPECT_EQ(square_sum(at::ones({3, 2}).t()), 6);
}

}  // namespace
}  // namespace convssm::ops::testing
