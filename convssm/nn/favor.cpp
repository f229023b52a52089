// Chunks of about 64 tokens: quadratic and masked inside, sums between them, so that work and memory grow linearly with
// the sequence. Every exponential is relative to a maximum that only grows, so all factors between maxima are at most 1
// and nothing overflows.
#include "convssm/nn/favor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

constexpr int64_t kChunk = 64;  // tokens: quadratic inside, sums between

// Whether token j belongs to the frame of token i or an earlier one: bool [T,T].
at::Tensor sight(int64_t T, int64_t n, const at::TensorOptions& options) {
  const at::Tensor frame = at::arange(T, options.dtype(at::kLong)).div(n, "floor");
  return frame.unsqueeze(1) >= frame;
}

// The largest value up to and including the frame of each token, from x [N,T] and that of the past [N] or undefined.
at::Tensor running_max(const at::Tensor& x, int64_t n, const at::Tensor& past) {
  const at::Tensor frames = x.view({x.size(0), x.size(1) / n, n}).amax(-1);
  at::Tensor so_far = std::get<0>(frames.cummax(1));
  if (past.defined()) so_far = at::maximum(so_far, past.unsqueeze(1));
  return so_far.unsqueeze(-1).expand({-1, -1, n}).reshape(x.sizes());
}

}  // namespace

at::Tensor orthogonal_features(int64_t m, int64_t d, const Stream& stream) {
  std::vector<at::Tensor> blocks;
  for (int64_t row = 0; row < m; row += d) {
    Stream own = stream.split("block", row / d);
    blocks.push_back(std::get<0>(at::linalg_qr(ssm::normal({d, d}, 1, own).to(at::kDouble))).t());
  }
  Stream lengths = stream.split("lengths");
  const at::Tensor norms = ssm::normal({m, d}, 1, lengths).to(at::kDouble).norm(2, {1}, true);
  return (at::cat(blocks).narrow(0, 0, m) * norms).to(at::kFloat);
}

FavorAttention::FavorAttention(const HeadShape& shape, int64_t random_features, double epsilon, const Stream& stream)
    : shape_(shape), epsilon_(epsilon) {
  ops::require("FAVOR+", random_features > 0, "random_features must be positive, got {}", random_features);
  ops::require("FAVOR+", epsilon >= 0 && epsilon < 1, "epsilon must be in [0,1), got {}", epsilon);
  projection_ = register_buffer("projection", orthogonal_features(random_features, shape.size, stream));
}

std::vector<std::vector<int64_t>> FavorAttention::memory_shapes(int64_t B, int64_t) const {
  const int64_t H = shape_.heads, m = projection_.size(0), d = shape_.size;
  return {{B, H, m, d}, {B, H, m}, {B, H, d}, {B, H}};
}

FavorAttention::Sequence FavorAttention::features(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                  const Memory& before) const {
  const auto scaled = [&](const at::Tensor& x) { return x.flatten(0, 1) * std::pow(shape_.size, -0.25); };
  const auto half_square = [](const at::Tensor& x) { return x.square().sum(-1, true) / 2; };
  const at::Tensor xq = scaled(q), xk = scaled(k);
  const at::Tensor wq = at::matmul(xq, projection_.t()), wk = at::matmul(xk, projection_.t());
  Sequence all;
  all.v = v.flatten(0, 1);
  all.max = running_max(wk.detach().amax(-1), shape_.tokens_per_frame,
                        before.empty() ? at::Tensor() : before[3].flatten().detach());
  const at::Tensor q_max = wq.detach().amax(-1, true);
  all.q = (wq - (half_square(xq) + q_max)).exp() + epsilon_;
  all.k = (wk - (half_square(xk) + all.max.unsqueeze(-1))).exp();
  return all;
}

// Outputs of some frames, masked and quadratic among themselves, and the sums after them. Every factor exp(M - M') has
// M <= M'.
at::Tensor FavorAttention::run_chunk(const Sequence& chunk, Memory& sums, int64_t seen) const {
  const double scale = 1 / static_cast<double>(projection_.size(0));  // r^2, left out of q and k
  const int64_t T = chunk.q.size(1);
  const at::Tensor see = sight(T, shape_.tokens_per_frame, chunk.q.options());
  const at::Tensor decay = (chunk.max.unsqueeze(1) - chunk.max.unsqueeze(2))
                               .masked_fill(see.logical_not(), -std::numeric_limits<double>::infinity())
                               .exp();
  const at::Tensor eps_q = epsilon_ * chunk.q.sum(-1, true);  // [N,T,1]
  const at::Tensor weights = at::bmm(chunk.q, chunk.k.transpose(1, 2)) * decay + eps_q * see;
  at::Tensor numerator = at::bmm(weights, chunk.v), denominator = weights.sum(-1, true);
  const at::Tensor last = chunk.max.select(1, T - 1).clone();  // it outlives the sequence
  const at::Tensor to_last = (chunk.max - last.unsqueeze(1)).exp().unsqueeze(-1);
  const at::Tensor k = chunk.k * to_last;
  at::Tensor s = at::bmm(k.transpose(1, 2), chunk.v), z = k.sum(1), v_sum = chunk.v.sum(1);
  if (!sums.empty()) {
    const at::Tensor past = (sums[3].unsqueeze(1) - chunk.max).exp().unsqueeze(-1);
    numerator = numerator + past * at::bmm(chunk.q, sums[0]) + eps_q * sums[2].unsqueeze(1);
    denominator = denominator + past * at::bmm(chunk.q, sums[1].unsqueeze(-1)) + eps_q * static_cast<double>(seen);
    const at::Tensor shrink = (sums[3] - last).exp().unsqueeze(-1);
    s = s + shrink.unsqueeze(-1) * sums[0];
    z = z + shrink * sums[1];
    v_sum = v_sum + sums[2];
  }
  sums = {s, z, v_sum, last};
  denominator = scale * denominator;
  denominator = denominator + 2 * epsilon_ * (denominator.abs() <= epsilon_);
  return scale * numerator / denominator;
}

Attended FavorAttention::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before,
                                 int64_t seen) {
  const int64_t n = shape_.tokens_per_frame, T = q.size(2), step = std::max<int64_t>(kChunk / n, 1) * n;
  const Sequence all = features(q, k, v, before);
  Memory sums;
  for (const at::Tensor& sum : before) sums.push_back(sum.flatten(0, 1));
  if (!sums.empty()) sums[3] = sums[3].detach();
  // split, not one narrow for each chunk: the backward of a narrow fills a tensor of all tokens.
  const auto qs = all.q.split(step, 1), ks = all.k.split(step, 1), vs = all.v.split(step, 1);
  const auto maxima = all.max.split(step, 1);
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < qs.size(); ++i) {
    outputs.push_back(run_chunk({qs[i], ks[i], vs[i], maxima[i]}, sums, seen + static_cast<int64_t>(i) * step));
  }
  const auto shapes = memory_shapes(q.size(0), seen + T);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i].view(shapes[i]);
  return {at::cat(outputs, 1).view(q.sizes()), sums};
}

}  // namespace convssm::nn
