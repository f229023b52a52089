// The activation blocks resnet, diag_resnet and sparse. In a plan the residual sum and the activation go into the epilogue of
// the last convolution. A depthwise kernel has no bias: the pointwise convolution after it has one.
#include <ATen/ATen.h>

#include "convssm/nn/activation_kinds.h"
#include "convssm/nn/frame_plan.h"

namespace convssm::nn {
namespace {

class ResidualBlock : public ActivationBlockImpl {
 public:
  ResidualBlock(const BlockOptions& options, const Stream& stream) : options_(options) {
    options_.groups = fitting_groups(options.channels, options.groups);
    norm1_ = register_module("norm1", Norm(options.channels));
    add_convolution(1, depthwise1_, conv1_, stream);
    norm2_ = register_module("norm2", Norm(options.channels));
    if (options.kind != BlockKind::diag_resnet) add_convolution(2, depthwise2_, conv2_, stream);
    if (options.squeeze_excite) se_ = register_module("se", SqueezeExcite(options.channels, stream.split("se")));
  }

  Buffer plan(FramePlan& plan, Buffer y) override {
    const auto act = options_.activation;
    const Buffer v = plan_depthwise(plan, depthwise1_, plan_norm(plan, norm1_, y));
    const Buffer w = plan_norm(plan, norm2_, plan.conv(v, conv1_->weight, conv1_->bias));
    if (!conv2_) return plan.add(y, w, act);
    const Buffer z = plan_depthwise(plan, depthwise2_, w);
    if (!se_) return plan.conv(z, conv2_->weight, conv2_->bias, {.add = y, .activation = act});
    const Buffer r = plan.conv(z, conv2_->weight, conv2_->bias);
    se_->plan(plan, r);
    return plan.add(y, r, act);
  }

 protected:
  at::Tensor run(const at::Tensor& y) override {
    at::Tensor h = convolved(depthwise1_, conv1_, norm1_->group_norm(y, options_.groups, options_.activation));
    h = norm2_->group_norm(h, options_.groups, options_.activation);
    if (conv2_) h = convolved(depthwise2_, conv2_, h);
    if (se_) h = se_(h);
    return ops::add_activate(y, h, options_.activation);
  }

 private:
  void add_convolution(int index, Depthwise& depthwise, Conv& conv, const Stream& stream) {
    const int64_t C = options_.channels;
    const bool sparse = options_.kind == BlockKind::sparse;
    const std::string number = std::to_string(index), first = "depthwise" + number, label = "conv" + number;
    if (sparse) depthwise = register_module(first, Depthwise(C, options_.kernel, stream.split(first), false));
    conv = register_module(label, Conv(C, C, sparse ? 1 : options_.kernel, stream.split(label)));
  }

  static at::Tensor convolved(Depthwise& depthwise, Conv& conv, const at::Tensor& x) {
    return conv(depthwise ? depthwise(x) : x);
  }

  static Buffer plan_depthwise(FramePlan& plan, const Depthwise& depthwise, Buffer x) {
    return depthwise ? plan.depthwise(x, depthwise->weight, depthwise->bias) : x;
  }

  Buffer plan_norm(FramePlan& plan, const Norm& norm, Buffer x) const {
    return plan.group_norm(x, options_.groups, norm->weight, norm->bias, options_.activation);
  }

  BlockOptions options_;
  Norm norm1_{nullptr}, norm2_{nullptr};
  Depthwise depthwise1_{nullptr}, depthwise2_{nullptr};
  Conv conv1_{nullptr}, conv2_{nullptr};
  SqueezeExcite se_{nullptr};
};

}  // namespace

std::shared_ptr<ActivationBlockImpl> make_residual_block(const BlockOptions& options, const Stream& stream) {
  return std::make_shared<ResidualBlock>(options, stream);
}

}  // namespace convssm::nn
