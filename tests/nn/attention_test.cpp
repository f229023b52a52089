// Softmax attention against its definition, query by query; windows, splitting, the memory, gradients.
#include "convssm/nn/attention.h"

#include "tests/nn/attention_laws.h"

namespace convssm::nn::testing {
namespace {

// Query i sees the keys of its own frame and of the window - 1 frames before (0: of all).
at::Tensor softmax_attention(const Tokens& t, const HeadShape& shape, int64_t window) {
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < t.q.size(2); ++i) {
    const int64_t frame = i / shape.tokens_per_frame, end = (frame + 1) * shape.tokens_per_frame;
    const int64_t begin = window == 0 ? 0 : std::max<int64_t>(frame - window + 1, 0) * shape.tokens_per_frame;
    const at::Tensor keys = t.k.slice(2, begin, end), values = t.v.slice(2, begin, end);
    const at::Tensor scores = (keys * t.q.slice(2, i, i + 1)).sum(-1) / std::sqrt(static_cast<double>(shape.size));
    const at::Tensor weights = at::exp(scores - scores.amax(-1, true));
    outputs.push_back((weights.unsqueeze(-1) * values).sum(2) / weights.sum(-1, true));
  }
  return at::stack(outputs, 2);
}

// Queries are taken in blocks of 128 tokens: within one, over several, and frames that are larger than a block.
TEST(SoftmaxAttention, IsItsDefinition) {
  torch::NoGradGuard no_grad;
  for (const auto& [n, frames] : {std::pair{1, 7}, {1, 150}, {3, 50}, {4, 5}, {130, 2}}) {
    const HeadShape shape{2, 4, n};
    const Tokens t(shape, n * frames);
    for (const int64_t window : {0, 1, 2, 5, 1000}) {
      SoftmaxAttention attention(shape, window);
      EXPECT_LT(distance(attention.forward(t.q, t.k, t.v, {}, 0).out, softmax_attention(t, shape, window)), 1e-12)
          << n << " tokens, " << frames << " frames, window " << window;
    }
  }
}

TEST(SoftmaxAttention, SplittingAnywhereChangesNothing) {
  for (const int64_t n : {1, 3}) {
    for (const int64_t window : {0, 1, 2, 4}) {
      SoftmaxAttention attention({2, 4, n}, window);
      expect_split_is_whole(attention, {2, 4, n}, 9);
    }
  }
}

TEST(SoftmaxAttention, KeepsWhatLaterTokensSee) {
  torch::NoGradGuard no_grad;
  const HeadShape shape{2, 4, 3};
  const Tokens t(shape, 3 * 10);
  for (const int64_t window : {0, 1, 4, 20}) {
    SoftmaxAttention attention(shape, window);
    EXPECT_EQ(attention.memory_names(), (std::vector<std::string>{"k", "v"}));
    const Memory memory = attention.forward(t.q, t.k, t.v, {}, 0).memory;
    const int64_t frames = window == 0 ? 10 : std::min<int64_t>(window - 1, 10);
    ASSERT_EQ(memory.size(), 2u);
    EXPECT_TRUE(memory[0].equal(t.k.slice(2, 30 - 3 * frames))) << window;
    EXPECT_TRUE(memory[1].equal(t.v.slice(2, 30 - 3 * frames))) << window;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(memory[i].sizes(), at::IntArrayRef(attention.memory_shapes(2, 30)[i]));
  }
}

TEST(SoftmaxAttention, GradientsAreThoseOfFiniteDifferences) {
  for (const int64_t window : {0, 2}) {
    SoftmaxAttention attention({1, 3, 2}, window);
    expect_gradients(attention, {1, 3, 2});
  }
}

TEST(SoftmaxAttention, LargeScoresDoNotOverflow) {
  torch::NoGradGuard no_grad;
  const HeadShape shape{1, 4, 1};
  Tokens t(shape, 5);
  t.q = t.q * 1e4;
  EXPECT_LT(distance(SoftmaxAttention(shape, 0).forward(t.q, t.k, t.v, {}, 0).out, softmax_attention(t, shape, 0)),
            1e-8);
}

}  // namespace
}  // namespace convssm::nn::testing
