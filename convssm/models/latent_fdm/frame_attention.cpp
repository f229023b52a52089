// Products with relative positions are taken for all pixels together, as matrices of a frame: [P,size] by [size,K].
#include "convssm/models/latent_fdm/frame_attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "convssm/nn/attention.h"
#include "convssm/ops/activation.h"

namespace convssm::models::latent_fdm {
namespace {

// [N,K,C] -> [N,C,K,1] in the same memory, as norms and dense layers take it, and back.
at::Tensor as_frame(const at::Tensor& x) { return x.transpose(1, 2).unsqueeze(3); }
at::Tensor as_rows(const at::Tensor& x) { return x.squeeze(3).transpose(1, 2); }

}  // namespace

void set_pairs(FrameFacts& facts, const at::Tensor& numbers, const at::Tensor& padding, const at::TensorOptions& like) {
  facts.B = numbers.size(0), facts.K = numbers.size(1);
  const at::Tensor d = numbers.unsqueeze(2) - numbers.unsqueeze(1), far = d.to(like);
  facts.distances =
      at::stack({far.clamp_min(0).log1p(), (-far).clamp_min(0).log1p(), d.eq(0).to(like)}, -1).flatten(0, 2);
  facts.apart = padding.defined() ? (padding.unsqueeze(2) != padding.unsqueeze(1)).unsqueeze(1).unsqueeze(1) : padding;
}

RelativePositionImpl::RelativePositionImpl(int64_t channels, int64_t heads, int64_t embedding, const Stream& stream)
    : heads_(heads) {
  distance_ = register_module("distance", Linear(3, channels, stream.split("distance")));
  time_ = register_module("time", Linear(embedding, channels, stream.split("time")));
  out_ = register_module("out", Linear(channels, channels, stream.split("out"), true));
}

at::Tensor RelativePositionImpl::forward(const FrameFacts& f) {
  const at::Tensor pairs = distance_(f.distances).unflatten(0, {f.B * f.K, f.K});
  const at::Tensor hidden = ops::activate(pairs + time_(f.embedding).unsqueeze(1), ops::Activation::swish);
  return out_(hidden.flatten(0, 1)).view({f.B, f.K, f.K, heads_, -1}).permute({0, 3, 1, 2, 4});
}

TemporalAttentionImpl::TemporalAttentionImpl(int64_t channels, int64_t heads, int64_t embedding, int64_t groups,
                                             const Stream& stream)
    : heads_(heads) {
  norm_ = register_module("norm", GroupNorm(channels, groups));
  qkv_ = register_module("qkv", Linear(channels, 3 * channels, stream.split("qkv")));
  const auto position = [&](const char* name) {
    return register_module(name, RelativePosition(channels, heads, embedding, stream.split(name)));
  };
  position_q_ = position("position_q");
  position_k_ = position("position_k");
  position_v_ = position("position_v");
  out_ = register_module("out", Linear(channels, channels, stream.split("out"), true));
}

at::Tensor TemporalAttentionImpl::attend(const at::Tensor& qkv, const FrameFacts& facts) {
  const at::Tensor each = qkv.permute({3, 0, 4, 1, 2, 5});  // [3,B,heads,P,K,size]
  const double scale = 1 / std::sqrt(static_cast<double>(qkv.size(5)));
  const at::Tensor q = each[0] * scale, k = each[1], v = each[2];
  const at::Tensor by_keys = at::matmul(q.transpose(2, 3), position_k_(facts).transpose(3, 4)),  // [B,heads,t,P,s]
      by_queries = at::matmul(k.transpose(2, 3) * scale, position_q_(facts).transpose(3, 4));    // [B,heads,s,P,t]
  at::Tensor logits =
      at::matmul(q, k.transpose(3, 4)) + by_keys.permute({0, 1, 3, 2, 4}) + by_queries.permute({0, 1, 3, 4, 2});
  if (facts.apart.defined()) logits = logits.masked_fill(facts.apart, -std::numeric_limits<double>::infinity());
  const at::Tensor weights = logits.softmax(-1);  // [B,heads,P,t,s]
  const at::Tensor out = at::matmul(weights, v) +
                         at::matmul(weights.transpose(2, 3), position_v_(facts)).transpose(2, 3);  // [B,heads,P,t,size]
  return out.permute({0, 2, 3, 1, 4});
}

at::Tensor TemporalAttentionImpl::forward(const at::Tensor& x, const FrameFacts& facts) {
  const int64_t B = facts.B, K = facts.K, C = x.size(1), H = x.size(2), W = x.size(3);
  const at::Tensor pixels =
      x.permute({0, 2, 3, 1}).reshape({B, K, H * W, C}).transpose(1, 2).reshape({B * H * W, K, C});
  const at::Tensor h = norm_(as_frame(pixels));
  const at::Tensor qkv = as_rows(qkv_(h)).reshape({B, H * W, K, 3, heads_, C / heads_});
  const at::Tensor out = as_rows(h + out_(as_frame(attend(qkv, facts).reshape({B * H * W, K, C}))));
  return out.reshape({B, H * W, K, C}).transpose(1, 2).reshape({B * K, H, W, C}).permute({0, 3, 1, 2});
}

SpatialAttentionImpl::SpatialAttentionImpl(int64_t channels, int64_t heads, int64_t groups, const Stream& stream)
    : heads_(heads) {
  norm_ = register_module("norm", GroupNorm(channels, groups));
  qkv_ = register_module("qkv", Linear(channels, 3 * channels, stream.split("qkv")));
  out_ = register_module("out", Linear(channels, channels, stream.split("out"), true));
}

at::Tensor SpatialAttentionImpl::forward(const at::Tensor& x) {
  const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  const at::Tensor h = norm_(x);
  const at::Tensor each =
      qkv_(h).permute({0, 2, 3, 1}).reshape({N, H * W, 3, heads_, C / heads_}).permute({2, 0, 3, 1, 4});
  const at::Tensor mixed = nn::attend_frames(each[0], each[1], each[2], H * W, 0);  // [N,heads,P,size]
  return h + out_(mixed.transpose(1, 2).reshape({N, H, W, C}).permute({0, 3, 1, 2}));
}

FactorizedAttentionImpl::FactorizedAttentionImpl(int64_t channels, int64_t heads, int64_t embedding, int64_t groups,
                                                 const Stream& stream) {
  temporal_ =
      register_module("temporal", TemporalAttention(channels, heads, embedding, groups, stream.split("temporal")));
  spatial_ = register_module("spatial", SpatialAttention(channels, heads, groups, stream.split("spatial")));
}

}  // namespace convssm::models::latent_fdm
