// FAVOR+ against its formula, token by token; splitting, gradients, its features, and that it approaches softmax.
#include "convssm/nn/favor.h"

#include "tests/nn/attention_laws.h"

namespace convssm::nn::testing {
namespace {

// nn/favor.h, with all features and sums of a token written out.
at::Tensor formula(const Tokens& t, const HeadShape& shape, const at::Tensor& w, double epsilon) {
  const double scale = std::pow(shape.size, -0.25), r = 1 / std::sqrt(static_cast<double>(w.size(0)));
  const at::Tensor q = scale * t.q, k = scale * t.k;
  const at::Tensor wq = at::matmul(q, w.t()), wk = at::matmul(k, w.t());
  const auto half_square = [](const at::Tensor& x) { return x.square().sum(-1, true) / 2; };
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < t.q.size(2); ++i) {
    const int64_t end = (i / shape.tokens_per_frame + 1) * shape.tokens_per_frame;
    const auto own = [&](const at::Tensor& x) { return x.slice(2, i, i + 1); };
    const auto past = [&](const at::Tensor& x) { return x.slice(2, 0, end); };
    const at::Tensor largest = past(wk).flatten(2).amax(-1).unsqueeze(-1).unsqueeze(-1);
    const at::Tensor phi_q = r * (at::exp(own(wq) - half_square(own(q)) - own(wq).amax(-1, true)) + epsilon);
    const at::Tensor phi_k = r * (at::exp(past(wk) - half_square(past(k)) - largest) + epsilon);
    const at::Tensor weights = at::matmul(phi_k, phi_q.transpose(-1, -2));  // [B,heads,end,1]
    const at::Tensor sum = weights.sum(2);
    outputs.push_back((weights * past(t.v)).sum(2) / (sum + 2 * epsilon * (sum <= epsilon)));
  }
  return at::stack(outputs, 2);
}

struct Subject {
  HeadShape shape;
  FavorAttention attention;
  Subject(const HeadShape& s, int64_t features, double epsilon = 1e-4)
      : shape(s), attention(s, features, epsilon, Stream(4)) {
    attention.to(at::kDouble);
  }
  at::Tensor features() const { return attention.named_buffers()["projection"]; }
};

// Tokens are taken in chunks of 64: within one, over several, and frames that are larger than a chunk.
TEST(Favor, IsItsFormula) {
  torch::NoGradGuard no_grad;
  for (const auto& [n, frames] : {std::pair{1, 6}, {1, 140}, {3, 50}, {70, 2}}) {
    for (const double epsilon : {0.0, 1e-4, 0.1}) {
      Subject s({2, 4, n}, 10, epsilon);
      const Tokens t(s.shape, n * frames);
      const at::Tensor expected = formula(t, s.shape, s.features(), epsilon);
      EXPECT_LT(distance(s.attention.forward(t.q, t.k, t.v, {}, 0).out, expected), 1e-9 * max_abs(expected))
          << n << " tokens, " << frames << " frames, epsilon " << epsilon;
    }
  }
}

TEST(Favor, SplittingAnywhereChangesNothing) {
  for (const int64_t n : {1, 3}) {
    Subject s({2, 4, n}, 6);
    expect_split_is_whole(s.attention, s.shape, 9);
  }
}

// Maxima are constants in gradients, and cancel but for epsilon: without it the gradients are exact.
TEST(Favor, GradientsAreThoseOfFiniteDifferences) {
  Subject s({1, 3, 2}, 5, 0);
  expect_gradients(s.attention, s.shape, 1e-7);
}

TEST(Favor, FeaturesAreOrthogonalAndAsLongAsNormalVectors) {
  const at::Tensor w = orthogonal_features(200, 16, Stream(1)).to(at::kDouble);
  ASSERT_EQ(w.size(0), 200);
  for (int64_t row = 0; row < 200; row += 16) {
    const at::Tensor block = w.slice(0, row, std::min<int64_t>(row + 16, 200));
    const at::Tensor gram = at::matmul(block, block.t());
    EXPECT_LT(distance(gram, at::diag(gram.diagonal())), 1e-5);
  }
  EXPECT_NEAR(w.square().sum(1).mean().item<double>(), 16, 1.5);  // the mean of a chi-squared variable
  EXPECT_GT(w.square().sum(1).std().item<double>(), 3);
}

TEST(Favor, ApproachesSoftmaxWithManyFeatures) {
  torch::NoGradGuard no_grad;
  const HeadShape shape{2, 8, 1};
  Tokens t(shape, 100);
  t.q = 0.7 * t.q;
  t.k = 0.7 * t.k;
  SoftmaxAttention exact(shape, 0);
  const auto error = [&](int64_t m) {
    Subject s(shape, m, 1e-6);
    const at::Tensor found = s.attention.forward(t.q, t.k, t.v, {}, 0).out;
    return (found - exact.forward(t.q, t.k, t.v, {}, 0).out).square().mean().item<double>();
  };
  EXPECT_LT(error(4096), 1e-3);
  EXPECT_LT(error(4096), error(64) / 8);
}

TEST(Favor, LargeKeysNeitherOverflowNorVanish) {
  torch::NoGradGuard no_grad;
  FavorAttention favor({1, 8, 1}, 32, 1e-6, Stream(4));
  const at::Tensor k = at::linspace(-60, 60, 150).view({1, 1, 150, 1}) * at::ones({8});
  EXPECT_TRUE(favor.forward(k, k, at::ones_like(k), {}, 0).out.isfinite().all().item<bool>());
}

TEST(Favor, BadUse) {
  expect_error([] { FavorAttention({1, 4, 1}, 0, 1e-4, Stream(1)); }, {"random_features", "0"});
  expect_error([] { FavorAttention({1, 4, 1}, 4, -1, Stream(1)); }, {"epsilon", "-1"});
}

}  // namespace
}  // namespace convssm::nn::testing
