// The blocks of a resolution, with the pooling or doubling before them, are one unit of recompute(). Frames are made
// channels_last once, at the entry; every operation after keeps that layout.
#include "convssm/nn/frame_coder.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <nlohmann/json.hpp>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/resize.h"

namespace convssm::nn {
namespace {

// Frames of one channel fit both layouts of memory; without strides that say so they are taken for channels first, and
// every frame after them would have to be turned around.
at::Tensor channels_last(const at::Tensor& x) {
  const at::Tensor y = x.contiguous(at::MemoryFormat::ChannelsLast);
  if (y.size(1) != 1 || y.requires_grad()) return y;
  return y.as_strided(y.sizes(), {y.size(2) * y.size(3), 1, y.size(3), 1});
}

void check(const char* owner, const CoderOptions& o) {
  ops::require(owner, !o.depths.empty() && o.depths.size() <= 8,
               "depths must be a list of 1 to 8 channel counts, got {}", o.depths.size());
  for (const int64_t depth : o.depths) ops::require(owner, depth > 0, "depths must be positive, got {}", depth);
  require_between(owner, "blocks", o.blocks, 1, most_layers);
  ops::require(owner, o.groups > 0, "groups must be positive, got {}", o.groups);
}

// Adds `count` blocks that end with `depth` channels to a list; `channels` becomes `depth`.
std::vector<ResBlock> add_blocks(torch::nn::ModuleListImpl& list, int64_t count, int64_t& channels, int64_t depth,
                                 int64_t groups, const Stream& stream) {
  std::vector<ResBlock> blocks;
  for (int64_t i = 0; i < count; ++i) {
    blocks.emplace_back(frame_block, channels, depth, groups, stream.split("block", list.size()));
    list.push_back(blocks.back());
    channels = depth;
  }
  return blocks;
}

// Blocks with what comes before them, `begin`: one part for recompute().
at::Tensor run_level(const std::vector<ResBlock>& blocks, const torch::nn::Module* first, const at::Tensor& x,
                     const std::function<at::Tensor(const at::Tensor&)>& begin) {
  std::vector<const torch::nn::Module*> owners;
  if (first != nullptr) owners.push_back(first);
  for (const ResBlock& block : blocks) owners.push_back(block.get());
  const auto run = [blocks, begin](const Tensors& in) {
    at::Tensor h = begin(in[0]);
    for (ResBlock block : blocks) h = block(h);
    return Tensors{h};
  };
  return recompute(owners, {x}, run)[0];
}

at::Tensor double_size(const at::Tensor& x) { return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}); }

}  // namespace

void CoderOptions::read_from(const char* owner, const nlohmann::json& json) {
  OptionReader read(owner, json);
  read("depths", depths);
  read("blocks", blocks);
  read("groups", groups);
  read.finish();
  check(owner, *this);
}

EncoderImpl::EncoderImpl(int64_t in, const CoderOptions& options, const Stream& stream) {
  check("encoder", options);
  int64_t channels = options.depths[0];
  first_ = register_module("first", Conv(in, channels, 3, stream.split("first")));
  auto list = register_module("blocks", torch::nn::ModuleList());
  for (size_t i = 0; i < options.depths.size(); ++i) {
    const int64_t count = i == 0 ? 1 : options.blocks;
    levels_.push_back(add_blocks(*list, count, channels, options.depths[i], options.groups, stream));
  }
}

at::Tensor EncoderImpl::forward(const at::Tensor& x) {
  const auto first = [conv = first_](const at::Tensor& in) mutable { return conv(channels_last(in)); };
  at::Tensor h = run_level(levels_[0], first_.get(), x, first);
  for (size_t i = 1; i < levels_.size(); ++i) h = run_level(levels_[i], nullptr, h, ops::half_size);
  return h;
}

Buffer EncoderImpl::plan(FramePlan& plan, Buffer x, bool exact) {
  Buffer h = plan.conv(x, first_->weight, first_->bias, {.exact = exact});
  for (size_t i = 0; i < levels_.size(); ++i) {
    if (i > 0) h = plan.pool2(h);
    for (auto& block : levels_[i]) h = block->plan(plan, h);
  }
  return h;
}

DecoderImpl::DecoderImpl(int64_t in, int64_t out, const CoderOptions& options, const Stream& stream) {
  check("decoder", options);
  int64_t channels = options.depths[0];
  first_ = register_module("first", Conv(in, channels, 3, stream.split("first")));
  auto list = register_module("blocks", torch::nn::ModuleList());
  for (size_t i = options.depths.size(); i-- > 0;) {
    levels_.push_back(add_blocks(*list, options.blocks, channels, options.depths[i], options.groups, stream));
  }
  norm_ = register_module("norm", Norm(channels));
  last_ = register_module("last", Dense(channels, out, stream.split("last")));
}

at::Tensor DecoderImpl::forward(const at::Tensor& x) {
  const auto first = [conv = first_](const at::Tensor& in) mutable { return conv(in); };
  at::Tensor h = run_level(levels_[0], first_.get(), x, first);
  for (size_t i = 1; i < levels_.size(); ++i) h = run_level(levels_[i], nullptr, h, double_size);
  return last_(norm_->layer_norm(h));
}

Buffer DecoderImpl::plan(FramePlan& plan, Buffer x) {
  return plan_levels(plan, plan.conv(x, first_->weight, first_->bias));
}

Buffer DecoderImpl::plan(FramePlan& plan, Buffer x, Buffer beside) {
  const Buffer h = plan.conv(x, first_->weight.slice(1, 0, x.channels), first_->bias);
  return plan_levels(plan, plan.conv(beside, first_->weight.slice(1, x.channels), {}, {.add = h}));
}

Buffer DecoderImpl::plan_levels(FramePlan& plan, Buffer h) {
  for (size_t i = 0; i < levels_.size(); ++i) {
    if (i > 0) h = plan.double_size(h);
    for (auto& block : levels_[i]) h = block->plan(plan, h);
  }
  return plan.conv(plan.layer_norm(h, norm_->weight, norm_->bias), last_->weight, last_->bias);
}

}  // namespace convssm::nn
