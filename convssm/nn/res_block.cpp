// Group norm with its activation, the convolutions and the residual sum are the fused operations that all models use.
#include "convssm/nn/res_block.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/conv2d.h"

namespace convssm::nn {

ResBlockImpl::ResBlockImpl(const ResBlockKind& kind, int64_t in, int64_t out, int64_t groups, const Stream& stream)
    : kind_(kind), groups1_(fitting_groups(in, groups)), groups2_(fitting_groups(out, groups)) {
  norm1_ = register_module("norm1", Norm(in));
  conv1_ = register_module("conv1", Conv(in, out, 3, stream.split("conv1")));
  norm2_ = register_module("norm2", Norm(out));
  conv2_ = register_module("conv2", Conv(out, out, 3, stream.split("conv2")));
  if (in == out) return;
  shortcut_ = register_module(kind.shortcut, Conv(in, out, 1, stream.split("shortcut"), kind.shortcut_bias));
}

at::Tensor ResBlockImpl::scaled(const at::Tensor& x) const { return kind_.residual == 1 ? x : kind_.residual * x; }

at::Tensor ResBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor h = conv1_(norm1_->group_norm(x, groups1_, kind_.activation));
  // The weights are scaled, not the frames: they are fewer, and so are their gradients. The same without gradients, so
  // that recomputed layers have the same bits.
  at::Tensor r =
      ops::conv2d(norm2_->group_norm(h, groups2_, kind_.activation), scaled(conv2_->weight), scaled(conv2_->bias));
  return r.add_(shortcut_ ? shortcut_(x) : x);
}

// The residual's factor goes into the weights of the second convolution, the sum into its epilogue.
Buffer ResBlockImpl::plan(FramePlan& plan, Buffer x) {
  const Buffer s = shortcut_ ? plan.conv(x, shortcut_->weight, shortcut_->bias) : x;
  const Buffer v = plan.group_norm(x, groups1_, norm1_->weight, norm1_->bias, kind_.activation);
  const Buffer h = plan.conv(v, conv1_->weight, conv1_->bias);
  const Buffer w = plan.group_norm(h, groups2_, norm2_->weight, norm2_->bias, kind_.activation);
  return plan.conv(w, scaled(conv2_->weight), scaled(conv2_->bias), {.add = s});
}

}  // namespace convssm::nn
