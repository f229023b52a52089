// Queries go in blocks of whole frames, so that the scores take block x keys and not queries x keys of memory. Keys
// beyond a block's last frame are cut off instead of masked; a mask is only needed when the block has several frames.
#include "convssm/nn/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace convssm::nn {
namespace {

constexpr int64_t kBlock = 128;    // queries at a time
constexpr double kMasked = -1e10;  // added to scores of tokens out of sight

// Queries are tokens [first, first + rows) and keys [begin, begin + columns), both counted from a start of a frame.
// 0 where a query sees a key, kMasked elsewhere.
at::Tensor sight(int64_t first, int64_t rows, int64_t begin, int64_t columns, int64_t n, int64_t window,
                 const at::TensorOptions& options) {
  const auto frames = [&](int64_t from, int64_t count) {
    return at::arange(from, from + count, options.dtype(at::kLong)).div(n, "floor");
  };
  const at::Tensor age = frames(first, rows).unsqueeze(1) - frames(begin, columns);
  at::Tensor hidden = age < 0;
  if (window > 0) hidden = hidden.logical_or(age >= window);
  return at::zeros({rows, columns}, options).masked_fill(hidden, kMasked);
}

at::Tensor append(const Memory& before, size_t which, const at::Tensor& x) {
  return before.empty() ? x : at::cat({before[which], x}, 2);
}

}  // namespace

at::Tensor attend_frames(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, int64_t n,
                         int64_t window) {
  const int64_t T = q.size(2), step = std::max<int64_t>(kBlock / n, 1) * n;
  const auto queries = (q.flatten(0, 1) / std::sqrt(static_cast<double>(q.size(3)))).split(step, 1);
  const int64_t past = keys.size(2) - T;
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < T; i += step) {
    const int64_t rows = std::min(step, T - i), end = past + i + rows;
    const int64_t begin = window == 0 ? 0 : std::max<int64_t>(past + i - (window - 1) * n, 0);
    const at::Tensor& query = queries[i / step];
    const at::Tensor key = keys.narrow(2, begin, end - begin).flatten(0, 1).transpose(1, 2);
    // One frame of queries sees all of these keys.
    const at::Tensor scores =
        rows == n ? at::bmm(query, key)
                  : at::baddbmm(sight(past + i, rows, begin, end - begin, n, window, q.options()), query, key);
    outputs.push_back(at::bmm(scores.softmax(-1), values.narrow(2, begin, end - begin).flatten(0, 1)));
  }
  return (outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1)).view(q.sizes());
}

SoftmaxAttention::SoftmaxAttention(const HeadShape& shape, int64_t window) : shape_(shape), window_(window) {}

int64_t SoftmaxAttention::kept(int64_t seen) const {
  return window_ == 0 ? seen : std::min(seen, (window_ - 1) * shape_.tokens_per_frame);
}

std::vector<std::vector<int64_t>> SoftmaxAttention::memory_shapes(int64_t B, int64_t seen) const {
  return std::vector<std::vector<int64_t>>(2, {B, shape_.heads, kept(seen), shape_.size});
}

Attended SoftmaxAttention::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before,
                                   int64_t seen) {
  const at::Tensor keys = append(before, 0, k), values = append(before, 1, v);
  const at::Tensor out = attend_frames(q, keys, values, shape_.tokens_per_frame, window_);
  const int64_t S = keys.size(2), keep = kept(seen + q.size(2));
  if (keep == S) return {out, {keys, values}};
  // A copy, so that a short memory does not hold on to the storage of a long sequence.
  return {out, {keys.narrow(2, S - keep, keep).clone(), values.narrow(2, S - keep, keep).clone()}};
}

}  // namespace convssm::nn
