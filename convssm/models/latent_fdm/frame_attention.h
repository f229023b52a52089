// Factorized attention: over the frames at each pixel, then over the pixels of each frame. Frames have no order; what one knows of
// another is how far apart their numbers are, by three small networks (for queries, keys and values):
//   R_ts = W_o SiLU( W_d [log(1 + max(d,0)), log(1 + max(-d,0)), d = 0] + W_t e_t ),  d = number_t - number_s
//   logits_ts = (q_t . k_s + q_t . R^k_ts + k_s . R^q_st) / sqrt(size),  out_t = sum_s a_ts (v_s + R^v_ts)
// Padding frames and the others do not see each other. Both attentions normalize first and add to the normalized input, as published.
#pragma once

#include "convssm/models/latent_fdm/layers.h"

namespace convssm::models::latent_fdm {

// What is known of the K frames of B clips beside their pixels.
struct FrameFacts {
  int64_t B = 0, K = 0;
  at::Tensor embedding;  // [B*K,E]: the diffusion step, and the action
  at::Tensor known;      // SiLU of it
  at::Tensor distances;  // [B*K*K,3], those above of every pair
  at::Tensor apart;      // [B,1,1,K,K] bool: pairs that do not see each other; undefined: all do
};

// numbers [B,K] and padding [B,K] bool (undefined: there is none), of a type like `like`.
void set_pairs(FrameFacts& facts, const at::Tensor& numbers, const at::Tensor& padding, const at::TensorOptions& like);

class RelativePositionImpl : public torch::nn::Module {
 public:
  RelativePositionImpl(int64_t channels, int64_t heads, int64_t embedding, const Stream& stream);
  at::Tensor forward(const FrameFacts& facts);  // [B,heads,K,K,size]

 private:
  int64_t heads_;
  Linear distance_{nullptr}, time_{nullptr}, out_{nullptr};
};
TORCH_MODULE(RelativePosition);

class TemporalAttentionImpl : public torch::nn::Module {
 public:
  TemporalAttentionImpl(int64_t channels, int64_t heads, int64_t embedding, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, const FrameFacts& facts);  // [B*K,C,H,W]

 private:
  at::Tensor attend(const at::Tensor& qkv, const FrameFacts& facts);  // [B,P,K,3,heads,size] -> [B,P,K,heads,size]

  int64_t heads_;
  GroupNorm norm_{nullptr};
  Linear qkv_{nullptr}, out_{nullptr};
  RelativePosition position_q_{nullptr}, position_k_{nullptr}, position_v_{nullptr};
};
TORCH_MODULE(TemporalAttention);

class SpatialAttentionImpl : public torch::nn::Module {
 public:
  SpatialAttentionImpl(int64_t channels, int64_t heads, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,C,H,W]

 private:
  int64_t heads_;
  GroupNorm norm_{nullptr};
  Linear qkv_{nullptr}, out_{nullptr};
};
TORCH_MODULE(SpatialAttention);

class FactorizedAttentionImpl : public torch::nn::Module {
 public:
  FactorizedAttentionImpl(int64_t channels, int64_t heads, int64_t embedding, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, const FrameFacts& facts) { return spatial_(temporal_(x, facts)); }

 private:
  TemporalAttention temporal_{nullptr};
  SpatialAttention spatial_{nullptr};
};
TORCH_MODULE(FactorizedAttention);

}  // namespace convssm::models::latent_fdm
