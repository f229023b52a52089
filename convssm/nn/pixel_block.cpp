// The activation blocks that mix no pixels but by the statistics of a norm: standard and half_glu.
#include <ATen/ATen.h>

#include "convssm/nn/activation_kinds.h"
#include "convssm/nn/frame_plan.h"

namespace convssm::nn {
namespace {

class StandardBlock : public ActivationBlockImpl {
 public:
  StandardBlock(const BlockOptions& options, const Stream& stream)
      : groups_(fitting_groups(options.channels, options.groups)), activation_(options.activation) {
    norm_ = register_module("norm", Norm(options.channels));
    if (options.squeeze_excite) se_ = register_module("se", SqueezeExcite(options.channels, stream.split("se")));
  }

  Buffer plan(FramePlan& plan, Buffer y) override {
    const Buffer h = plan.group_norm(y, groups_, norm_->weight, norm_->bias, activation_);
    if (se_) se_->plan(plan, h);
    return h;
  }

 protected:
  at::Tensor run(const at::Tensor& y) override {
    const at::Tensor h = norm_->group_norm(y, groups_, activation_);
    return se_ ? se_(h) : h;
  }

 private:
  int64_t groups_;
  ops::Activation activation_;
  Norm norm_{nullptr};
  SqueezeExcite se_{nullptr};
};

class HalfGluBlock : public ActivationBlockImpl {
 public:
  HalfGluBlock(const BlockOptions& options, const Stream& stream) {
    norm_ = register_module("norm", Norm(options.channels));
    dense_ = register_module("dense", Dense(options.channels, options.channels, stream.split("dense"), 0.2));
  }

  Buffer plan(FramePlan& plan, Buffer y) override {
    const Buffer v = plan.activate(plan.layer_norm(y, norm_->weight, norm_->bias), ops::Activation::gelu);
    return plan.gate(v, plan.conv(v, dense_->weight, dense_->bias));
  }

 protected:
  at::Tensor run(const at::Tensor& y) override {
    const at::Tensor v = ops::activate(norm_->layer_norm(y), ops::Activation::gelu);
    return v * at::sigmoid(dense_(v));
  }

 private:
  Norm norm_{nullptr};
  Dense dense_{nullptr};
};

}  // namespace

std::shared_ptr<ActivationBlockImpl> make_pixel_block(const BlockOptions& options, const Stream& stream) {
  if (options.kind == BlockKind::half_glu) return std::make_shared<HalfGluBlock>(options, stream);
  return std::make_shared<StandardBlock>(options, stream);
}

}  // namespace convssm::nn
