// Convolutions of one pixel, and one head of attention over all of them.
#include "convssm/nn/vq_blocks.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/nn/frame_plan.h"

namespace convssm::nn {

VqAttentionImpl::VqAttentionImpl(int64_t channels, int64_t groups, const Stream& stream)
    : groups_(fitting_groups(channels, groups)) {
  norm_ = register_module("norm", Norm(channels));
  q_ = register_module("q", Conv(channels, channels, 1, stream.split("q")));
  k_ = register_module("k", Conv(channels, channels, 1, stream.split("k")));
  v_ = register_module("v", Conv(channels, channels, 1, stream.split("v")));
  out_ = register_module("proj_out", Conv(channels, channels, 1, stream.split("proj_out")));
}

at::Tensor VqAttentionImpl::forward(const at::Tensor& x) {
  const at::Tensor h = norm_->group_norm(x, groups_);
  const auto tokens = [](const at::Tensor& f) { return f.flatten(2).transpose(1, 2); };  // [N,H*W,C]
  const at::Tensor q = tokens(q_(h)) * (1 / std::sqrt(static_cast<double>(x.size(1))));
  const at::Tensor weights = at::softmax(at::bmm(q, k_(h).flatten(2)), -1);
  const at::Tensor mixed = at::bmm(weights, tokens(v_(h)));  // [N,H*W,C] is channels_last memory of [N,C,H,W]
  return out_(mixed.transpose(1, 2).reshape(x.sizes())) + x;
}

Buffer VqAttentionImpl::plan(FramePlan& plan, Buffer x) {
  const Buffer h = plan.group_norm(x, groups_, norm_->weight, norm_->bias, ops::Activation::identity);
  const Buffer q = plan.conv(h, q_->weight, q_->bias), k = plan.conv(h, k_->weight, k_->bias);
  const Buffer mixed = plan.attention(q, k, plan.conv(h, v_->weight, v_->bias));
  return plan.conv(mixed, out_->weight, out_->bias, {.add = x});
}

VqMiddleImpl::VqMiddleImpl(int64_t channels, int64_t groups, const Stream& stream) {
  block1_ = register_module("block_1", ResBlock(vq_block, channels, channels, groups, stream.split("block", 1)));
  attention_ = register_module("attn_1", VqAttention(channels, groups, stream.split("attention")));
  block2_ = register_module("block_2", ResBlock(vq_block, channels, channels, groups, stream.split("block", 2)));
}

at::Tensor VqMiddleImpl::forward(const at::Tensor& x) { return block2_(attention_(block1_(x))); }

Buffer VqMiddleImpl::plan(FramePlan& plan, Buffer x) {
  return block2_->plan(plan, attention_->plan(plan, block1_->plan(plan, x)));
}

}  // namespace convssm::nn
