// Patches are folded by halves, as the plan folds them: 2x2 pixels become channels in the order row, column, channel.
#include "convssm/nn/patch_encoder.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/activation.h"

namespace convssm::nn {
namespace {

at::Tensor fold2(const at::Tensor& x) {
  const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  return x.reshape({N, C, H / 2, 2, W / 2, 2}).permute({0, 3, 5, 1, 2, 4}).reshape({N, 4 * C, H / 2, W / 2});
}

at::Tensor swish(const at::Tensor& x) { return ops::activate(x, ops::Activation::swish); }

}  // namespace

std::shared_ptr<FrameEncoder> make_frame_encoder(const VqCoderOptions& options, const Stream& stream) {
  if (options.patches) return std::make_shared<PatchEncoderImpl>(options, stream);
  return std::make_shared<VqEncoderImpl>(options, stream);
}

PatchEncoderImpl::PatchEncoderImpl(const VqCoderOptions& o, const Stream& stream)
    : halvings_(o.multipliers.size() - 1) {
  check_vq_coder("PatchEncoder", o);
  const int64_t wide = o.features * o.multipliers.back();
  const auto conv = [&](const std::string& name, int64_t in, int64_t out) {
    return register_module(name, Conv(in, out, 1, stream.split(name)));
  };
  in_ = conv("conv_in", o.channels * o.scale() * o.scale(), wide);
  for (int64_t i = 0; i < o.blocks; ++i) {
    const std::string number = std::to_string(i);
    blocks_.push_back({conv("block" + number + "_1", wide, wide), conv("block" + number + "_2", wide, wide)});
  }
  out_ = conv("conv_out", wide, o.latent);
}

at::Tensor PatchEncoderImpl::forward(const at::Tensor& x) {
  at::Tensor folded = x;
  for (size_t i = 0; i < halvings_; ++i) folded = fold2(folded);
  at::Tensor h = in_(folded.contiguous(at::MemoryFormat::ChannelsLast));
  for (Block& block : blocks_) h = h + block.second(swish(block.first(swish(h))));
  return out_(swish(h));
}

Buffer PatchEncoderImpl::plan(FramePlan& plan, Buffer x) {
  Buffer folded = x;
  for (size_t i = 0; i < halvings_; ++i) folded = plan.fold2(folded);
  const auto conv = [&](Buffer from, const Conv& part) { return plan.conv(from, part->weight, part->bias); };
  const auto swish = [&](Buffer from) { return plan.activate(from, ops::Activation::swish); };
  Buffer h = conv(folded, in_);
  for (const Block& block : blocks_) h = plan.add(h, conv(swish(conv(swish(h), block.first)), block.second));
  return conv(swish(h), out_);
}

}  // namespace convssm::nn
