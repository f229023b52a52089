// What every attention must do: the same result for tokens in one call and in several, with gradients.
#pragma once

#include "convssm/nn/attention.h"
#include "tests/nn/plain.h"

namespace convssm::nn::testing {

// Two sequences of random tokens, float64.
struct Tokens {
  at::Tensor q, k, v;  // [2,heads,T,size]
  Tokens(const HeadShape& shape, int64_t T)
      : q(randn({2, shape.heads, T, shape.size}, 1)),
        k(randn({2, shape.heads, T, shape.size}, 2)),
        v(randn({2, shape.heads, T, shape.size}, 3)) {}
};

// The tokens cut into calls of these many frames.
inline Attended in_pieces(Attention& attention, const HeadShape& shape, const Tokens& t,
                          const std::vector<int64_t>& frames) {
  std::vector<at::Tensor> outputs;
  Memory memory;
  int64_t seen = 0;
  for (const int64_t count : frames) {
    const int64_t end = seen + count * shape.tokens_per_frame;
    const auto part = [&](const at::Tensor& x) { return x.slice(2, seen, end); };
    const Attended piece = attention.forward(part(t.q), part(t.k), part(t.v), memory, seen);
    outputs.push_back(piece.out);
    memory = piece.memory;
    seen = end;
  }
  return {at::cat(outputs, 2), memory};
}

inline void expect_split_is_whole(Attention& attention, const HeadShape& shape, int64_t frames) {
  torch::NoGradGuard no_grad;
  const Tokens t(shape, frames * shape.tokens_per_frame);
  const Attended whole = in_pieces(attention, shape, t, {frames});
  std::vector<std::vector<int64_t>> cuts;
  for (int64_t cut = 1; cut < frames; ++cut) cuts.push_back({cut, frames - cut});
  cuts.emplace_back(static_cast<size_t>(frames), 1);
  for (const auto& cut : cuts) {
    const Attended pieces = in_pieces(attention, shape, t, cut);
    EXPECT_LT(distance(pieces.out, whole.out), 1e-10) << "first piece of " << cut[0];
    ASSERT_EQ(pieces.memory.size(), whole.memory.size());
    for (size_t i = 0; i < whole.memory.size(); ++i) {
      EXPECT_EQ(whole.memory[i].sizes(), at::IntArrayRef(attention.memory_shapes(2, t.q.size(2))[i]));
      if (whole.memory[i].numel() == 0) continue;
      EXPECT_LT(distance(pieces.memory[i], whole.memory[i]), 1e-10) << "first piece of " << cut[0] << ", memory " << i;
    }
  }
}

// Of the queries, keys and values of three frames in two calls: gradients go through the memory.
inline void expect_gradients(Attention& attention, const HeadShape& shape, double bound = 1e-8) {
  const Tokens t(shape, 3 * shape.tokens_per_frame);
  const at::Tensor g = randn(t.q.sizes(), 4);
  const auto loss = [&] { return (in_pieces(attention, shape, t, {1, 2}).out * g).sum(); };
  EXPECT_LT(gradient_error(loss, {t.q, t.k, t.v}), bound);
}

}  // namespace convssm::nn::testing
