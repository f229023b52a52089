// A decoder block that doubles the frame does so, by its definition, first. Copies of a pixel stay copies up to the 5x5
// convolution, and mean and variance of copies are those of the pixels: so it is done there, with a quarter of the work before.
#include "convssm/models/fitvid/blocks.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/ops/conv2d.h"

namespace convssm::models::fitvid {
namespace {

constexpr int64_t kSqueezed = 16, kLeastSqueezed = 4;

at::Tensor add_swish(const at::Tensor& x, const at::Tensor& y) {
  return ops::add_activate(x, y, ops::Activation::swish);
}

nn::Conv conv_of(int64_t in, int64_t out, int64_t kernel, const Stream& stream) {
  return nn::Conv(in, out, kernel, stream, false);
}

}  // namespace

SqueezeExciteImpl::SqueezeExciteImpl(int64_t channels, const Stream& stream) {
  const int64_t few = std::max(channels / kSqueezed, kLeastSqueezed);
  squeeze_ = register_module("squeeze", nn::Dense(channels, few, stream.split("squeeze")));
  excite_ = register_module("excite", nn::Dense(few, channels, stream.split("excite")));
}

at::Tensor SqueezeExciteImpl::forward(const at::Tensor& x) {
  const at::Tensor factors = at::sigmoid(excite_(at::relu(squeeze_(x.mean({2, 3})))));
  return x * factors.unsqueeze(-1).unsqueeze(-1);
}

EncoderBlockImpl::EncoderBlockImpl(int64_t in, int64_t out, int64_t stride, const Stream& stream) : stride_(stride) {
  norm0_ = register_module("norm0", BatchNorm(in));
  conv0_ = register_module("conv0", conv_of(in, out, 3, stream.split("conv0")));
  norm1_ = register_module("norm1", BatchNorm(out));
  conv1_ = register_module("conv1", conv_of(out, out, 3, stream.split("conv1")));
  scale_ = register_module("scale", SqueezeExcite(out, stream.split("scale")));
  if (in == out && stride == 1) return;
  shortcut_ = register_module("shortcut", conv_of(in, out, 1, stream.split("shortcut")));
  shortcut_norm_ = register_module("shortcut_norm", BatchNorm(out));
}

at::Tensor EncoderBlockImpl::forward(const at::Tensor& x, Statistics statistics) {
  at::Tensor y = ops::conv2d(norm0_->forward_swish(x, statistics), conv0_->weight, {}, stride_);
  y = scale_(conv1_(norm1_->forward_swish(y, statistics)));
  if (!shortcut_) return add_swish(x, y);
  return add_swish(shortcut_norm_(ops::conv2d(x, shortcut_->weight, {}, stride_), statistics), y);
}

DecoderBlockImpl::DecoderBlockImpl(int64_t in, int64_t out, int64_t expansion, bool doubles, const Stream& stream)
    : doubles_(doubles) {
  const int64_t wide = expansion * out;
  norm0_ = register_module("norm0", BatchNorm(in));
  widen_ = register_module("widen", conv_of(in, wide, 1, stream.split("widen")));
  norm1_ = register_module("norm1", BatchNorm(wide));
  conv_ = register_module("conv", conv_of(wide, wide, 5, stream.split("conv")));
  norm2_ = register_module("norm2", BatchNorm(wide));
  narrow_ = register_module("narrow", conv_of(wide, out, 1, stream.split("narrow")));
  norm3_ = register_module("norm3", BatchNorm(out, 0));
  scale_ = register_module("scale", SqueezeExcite(out, stream.split("scale")));
  if (in == out) return;
  shortcut_ = register_module("shortcut", conv_of(in, out, 1, stream.split("shortcut")));
  shortcut_norm_ = register_module("shortcut_norm", BatchNorm(out));
}

at::Tensor DecoderBlockImpl::doubled(const at::Tensor& x) const {
  return doubles_ ? at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}) : x;
}

at::Tensor DecoderBlockImpl::forward(const at::Tensor& x, Statistics statistics) {
  at::Tensor y = norm1_->forward_swish(widen_(norm0_(x, statistics)), statistics);
  y = norm2_->forward_swish(conv_(doubled(y)), statistics);
  y = scale_(norm3_(narrow_(y), statistics));
  const at::Tensor rest = shortcut_ ? shortcut_norm_(shortcut_(x), statistics) : x;
  return add_swish(doubled(rest), y);
}

}  // namespace convssm::models::fitvid
