// Every kind exists twice: forward() in differentiable operations and plan() for generation, where the residual sum and
// the activation go into the epilogue of the last convolution. A test compares the two.
#include "convssm/nn/activation_block.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::nn {

const char* name(BlockKind kind) {
  switch (kind) {
    case BlockKind::standard:
      return "standard";
    case BlockKind::half_glu:
      return "half_glu";
    case BlockKind::diag_resnet:
      return "diag_resnet";
    case BlockKind::resnet:
      break;
  }
  return "resnet";
}

BlockKind parse_block_kind(const std::string& text) {
  for (const auto kind : {BlockKind::resnet, BlockKind::standard, BlockKind::half_glu, BlockKind::diag_resnet}) {
    if (text == name(kind)) return kind;
  }
  fail(ErrorKind::usage, "[activation_block] expected resnet, standard, half_glu or diag_resnet, got '{}'", text);
}

SqueezeExciteImpl::SqueezeExciteImpl(int64_t channels, const Stream& stream)
    : down_(channels, std::max<int64_t>(channels / 16, 4), stream.split("down")),
      up_(std::max<int64_t>(channels / 16, 4), channels, stream.split("up")) {
  register_module("down", down_);
  register_module("up", up_);
}

at::Tensor SqueezeExciteImpl::forward(const at::Tensor& x) {
  const at::Tensor gate = at::sigmoid(up_(at::relu(down_(x.mean({2, 3})))));
  return x * gate.unsqueeze(-1).unsqueeze(-1);
}

void SqueezeExciteImpl::plan(FramePlan& plan, Buffer x) {
  plan.squeeze_excite(x, down_->weight, down_->bias, up_->weight, up_->bias);
}

ActivationBlockImpl::ActivationBlockImpl(const BlockOptions& options, const Stream& stream) : options_(options) {
  const int64_t C = options.channels;
  ops::require("activation_block", C > 0, "channels must be positive, got {}", C);
  if (options.kind != BlockKind::half_glu) options_.groups = fitting_groups(C, options.groups);
  const auto conv = [&](const char* label) { return Conv(C, C, options.kernel, stream.split(label)); };
  switch (options.kind) {
    case BlockKind::resnet:
      norm1_ = register_module("norm1", Norm(C));
      conv1_ = register_module("conv1", conv("conv1"));
      norm2_ = register_module("norm2", Norm(C));
      conv2_ = register_module("conv2", conv("conv2"));
      break;
    case BlockKind::standard:
      norm_ = register_module("norm", Norm(C));
      break;
    case BlockKind::half_glu:
      norm_ = register_module("norm", Norm(C));
      dense_ = register_module("dense", Dense(C, C, stream.split("dense"), 0.2));
      break;
    case BlockKind::diag_resnet:
      norm1_ = register_module("norm1", Norm(C));
      conv1_ = register_module("conv1", conv("conv1"));
      norm2_ = register_module("norm2", Norm(C));
      break;
  }
  const bool takes_se = options.kind == BlockKind::resnet || options.kind == BlockKind::standard;
  ops::require("activation_block", takes_se || !options.squeeze_excite,
               "squeeze_excite goes with resnet or standard, got {}", nn::name(options.kind));
  if (options.squeeze_excite) se_ = register_module("se", SqueezeExcite(C, stream.split("se")));
}

at::Tensor ActivationBlockImpl::resnet(const at::Tensor& y) {
  at::Tensor h = conv1_(norm1_->group_norm(y, options_.groups, options_.activation));
  if (options_.kind == BlockKind::diag_resnet) {
    h = norm2_->group_norm(h, options_.groups, options_.activation);
  } else {
    h = conv2_(norm2_->group_norm(h, options_.groups, options_.activation));
  }
  if (se_) h = se_(h);
  return ops::add_activate(y, h, options_.activation);
}

at::Tensor ActivationBlockImpl::half_glu(const at::Tensor& y) {
  const at::Tensor v = ops::activate(norm_->layer_norm(y), ops::Activation::gelu);
  return v * at::sigmoid(dense_(v));
}

at::Tensor ActivationBlockImpl::forward(const at::Tensor& y) {
  ops::require_dims("activation_block", "y", y, 4, "[N,C,H,W]");
  switch (options_.kind) {
    case BlockKind::standard: {
      const at::Tensor h = norm_->group_norm(y, options_.groups, options_.activation);
      return se_ ? se_(h) : h;
    }
    case BlockKind::half_glu:
      return half_glu(y);
    case BlockKind::resnet:
    case BlockKind::diag_resnet:
      break;
  }
  return resnet(y);
}

Buffer ActivationBlockImpl::plan_resnet(FramePlan& plan, Buffer y) {
  const auto act = options_.activation;
  const Buffer v = plan.group_norm(y, options_.groups, norm1_->weight, norm1_->bias, act);
  const Buffer h = plan.conv(v, conv1_->weight, conv1_->bias);
  const Buffer w = plan.group_norm(h, options_.groups, norm2_->weight, norm2_->bias, act);
  if (options_.kind == BlockKind::diag_resnet) return plan.add(y, w, act);
  if (!se_) return plan.conv(w, conv2_->weight, conv2_->bias, {.add = y, .activation = act});
  const Buffer r = plan.conv(w, conv2_->weight, conv2_->bias);
  se_->plan(plan, r);
  return plan.add(y, r, act);
}

Buffer ActivationBlockImpl::plan_half_glu(FramePlan& plan, Buffer y) {
  const Buffer v = plan.activate(plan.layer_norm(y, norm_->weight, norm_->bias), ops::Activation::gelu);
  return plan.gate(v, plan.conv(v, dense_->weight, dense_->bias));
}

Buffer ActivationBlockImpl::plan(FramePlan& plan, Buffer y) {
  if (options_.kind == BlockKind::half_glu) return plan_half_glu(plan, y);
  if (options_.kind != BlockKind::standard) return plan_resnet(plan, y);
  const Buffer h = plan.group_norm(y, options_.groups, norm_->weight, norm_->bias, options_.activation);
  if (se_) se_->plan(plan, h);
  return h;
}

}  // namespace convssm::nn
