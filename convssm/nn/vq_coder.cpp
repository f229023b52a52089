// A level is one unit of recompute(). The last norm and convolution are outside of it, so that the gradient at the last
// weight is found without a backward through the rest. SAME padding of a stride of 2 (ops/conv2d.h) is what Down pads.
#include "convssm/nn/vq_coder.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>

#include "convssm/base/bounds.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"

namespace convssm::nn {
namespace {

using torch::nn::ModuleList;

// A module around a convolution, as the public layout has it: downsample.conv.weight.
struct ResampleImpl : torch::nn::Module {
  ResampleImpl(int64_t channels, const Stream& stream) {
    conv = register_module("conv", Conv(channels, channels, 3, stream.split("conv")));
  }
  Conv conv{nullptr};
};

template <typename Part>
at::Tensor recomputed(const Part& part, const at::Tensor& x) {
  return recompute({part.get()}, {x}, [part](const Tensors& in) { return Tensors{Part(part)(in[0])}; })[0];
}

}  // namespace

bool VqCoderOptions::attends(size_t level) const {
  return std::ranges::find(attention, height >> level) != attention.end();
}

void check_vq_coder(const char* owner, const VqCoderOptions& o) {
  const auto positive = [&](const char* name, int64_t value) { require_between(owner, name, value, 1, 1 << 16); };
  positive("features", o.features);
  positive("latent", o.latent);
  positive("groups", o.groups);
  require_between(owner, "blocks", o.blocks, 1, most_layers);
  ops::require(owner, !o.multipliers.empty() && o.multipliers.size() <= 8,
               "multipliers must be a list of 1 to 8 numbers, got {}", o.multipliers.size());
  for (const int64_t multiplier : o.multipliers) positive("multipliers", multiplier);
  for (const int64_t side : o.attention) positive("attention", side);
}

VqLevelImpl::VqLevelImpl(int64_t in, int64_t out, int64_t blocks, bool attends, End end, int64_t groups,
                         const Stream& stream)
    : end_(end) {
  auto block = register_module("block", ModuleList()), attention = register_module("attn", ModuleList());
  for (int64_t i = 0; i < blocks; ++i) {
    const auto index = static_cast<uint64_t>(i);
    blocks_.emplace_back(vq_block, i == 0 ? in : out, out, groups, stream.split("block", index));
    block->push_back(blocks_.back());
    if (!attends) continue;
    attention_.emplace_back(out, groups, stream.split("attention", index));
    attention->push_back(attention_.back());
  }
  if (end == End::none) return;
  const char* name = end == End::down ? "downsample" : "upsample";
  resample_ = register_module(name, std::make_shared<ResampleImpl>(out, stream.split(name)))->conv;
}

at::Tensor VqLevelImpl::forward(const at::Tensor& x) {
  at::Tensor h = x;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    h = blocks_[i](h);
    if (!attention_.empty()) h = attention_[i](h);
  }
  if (end_ == End::down) return ops::conv2d(h, resample_->weight, resample_->bias, 2);
  return end_ == End::up ? resample_(at::upsample_nearest2d(h, {2 * h.size(2), 2 * h.size(3)})) : h;
}

Buffer VqLevelImpl::plan(FramePlan& plan, Buffer x) {
  Buffer h = x;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    h = blocks_[i]->plan(plan, h);
    if (!attention_.empty()) h = attention_[i]->plan(plan, h);
  }
  if (end_ == End::down) return plan.conv_down(h, resample_->weight, resample_->bias);
  return end_ == End::up ? plan.conv(plan.double_size(h), resample_->weight, resample_->bias) : h;
}

VqEncoderImpl::VqEncoderImpl(const VqCoderOptions& o, const Stream& stream) {
  check_vq_coder("VqEncoder", o);
  first_ = register_module("conv_in", Conv(o.channels, o.features, 3, stream.split("conv_in")));
  auto down = register_module("down", ModuleList());
  int64_t channels = o.features;
  for (size_t i = 0; i < o.multipliers.size(); ++i) {
    const int64_t wide = o.features * o.multipliers[i];
    const auto end = i + 1 < o.multipliers.size() ? VqLevelImpl::End::down : VqLevelImpl::End::none;
    levels_.emplace_back(channels, wide, o.blocks, o.attends(i), end, o.groups, stream.split("down", i));
    down->push_back(levels_.back());
    channels = wide;
  }
  middle_ = register_module("mid", VqMiddle(channels, o.groups, stream.split("mid")));
  groups_ = fitting_groups(channels, o.groups);
  norm_ = register_module("norm_out", Norm(channels));
  last_ = register_module("conv_out", Conv(channels, o.latent, 3, stream.split("conv_out")));
}

at::Tensor VqEncoderImpl::forward(const at::Tensor& x) {
  at::Tensor h = first_(x);
  for (const VqLevel& level : levels_) h = recomputed(level, h);
  return last_(norm_->group_norm(recomputed(middle_, h), groups_, ops::Activation::swish));
}

Buffer VqEncoderImpl::plan(FramePlan& plan, Buffer x) {
  Buffer h = plan.conv(x, first_->weight, first_->bias);
  for (auto& level : levels_) h = level->plan(plan, h);
  h = plan.group_norm(middle_->plan(plan, h), groups_, norm_->weight, norm_->bias, ops::Activation::swish);
  return plan.conv(h, last_->weight, last_->bias);
}

VqDecoderImpl::VqDecoderImpl(const VqCoderOptions& o, const Stream& stream) {
  check_vq_coder("VqDecoder", o);
  int64_t channels = o.features * o.multipliers.back();
  first_ = register_module("conv_in", Conv(o.latent, channels, 3, stream.split("conv_in")));
  middle_ = register_module("mid", VqMiddle(channels, o.groups, stream.split("mid")));
  for (size_t i = o.multipliers.size(); i-- > 0;) {
    const int64_t wide = o.features * o.multipliers[i];
    const auto end = i > 0 ? VqLevelImpl::End::up : VqLevelImpl::End::none;
    levels_.emplace(levels_.begin(), channels, wide, o.blocks + 1, o.attends(i), end, o.groups, stream.split("up", i));
    channels = wide;
  }
  auto up = register_module("up", ModuleList());
  for (const VqLevel& level : levels_) up->push_back(level);
  groups_ = fitting_groups(channels, o.groups);
  norm_ = register_module("norm_out", Norm(channels));
  last_ = register_module("conv_out", Conv(channels, o.channels, 3, stream.split("conv_out")));
}

at::Tensor VqDecoderImpl::forward(const at::Tensor& z) {
  at::Tensor h = recomputed(middle_, first_(z));
  for (size_t i = levels_.size(); i-- > 0;) h = recomputed(levels_[i], h);
  return last_(norm_->group_norm(h, groups_, ops::Activation::swish));
}

Buffer VqDecoderImpl::plan(FramePlan& plan, Buffer z) {
  Buffer h = middle_->plan(plan, plan.conv(z, first_->weight, first_->bias));
  for (size_t i = levels_.size(); i-- > 0;) h = levels_[i]->plan(plan, h);
  h = plan.group_norm(h, groups_, norm_->weight, norm_->bias, ops::Activation::swish);
  return plan.conv(h, last_->weight, last_->bias);
}

}  // namespace convssm::nn
