// The activation block convnext. The layer scale g multiplies the weights of the second dense layer, which are fewer than the
// values of the frames. Published weights have a standard deviation of 0.02 and g = 1e-6, which leaves a stack of linear
// layers linear at the start; ours begins at 0.1 unless told otherwise.
#include <ATen/ATen.h>

#include <cmath>

#include "convssm/nn/activation_kinds.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"

namespace convssm::nn {
namespace {

constexpr int64_t kExpansion = 4;
constexpr double kStd = 0.02;

Dense small_dense(int64_t in, int64_t out, const Stream& stream) {
  return Dense(in, out, stream, kStd * kStd * static_cast<double>(in));
}

class ConvNextBlock : public ActivationBlockImpl {
 public:
  ConvNextBlock(const BlockOptions& options, const Stream& stream) {
    const int64_t C = options.channels, inner = kExpansion * C;
    ops::require("activation_block", std::isfinite(options.layer_scale), "layer_scale must be finite, got {}",
                 options.layer_scale);
    depthwise_ =
        register_module("depthwise", Depthwise(C, options.depthwise_kernel, stream.split("depthwise"), true, kStd));
    norm_ = register_module("norm", Norm(C));
    expand_ = register_module("expand", small_dense(C, inner, stream.split("expand")));
    contract_ = register_module("contract", small_dense(inner, C, stream.split("contract")));
    scale_ = register_parameter("scale", at::full({C}, options.layer_scale, at::kFloat));
  }

  Buffer plan(FramePlan& plan, Buffer y) override {
    const Buffer mixed = plan.depthwise(y, depthwise_->weight, depthwise_->bias);
    const Buffer v = plan.layer_norm(mixed, norm_->weight, norm_->bias);
    const Buffer h = plan.conv(v, expand_->weight, expand_->bias, {.activation = ops::Activation::gelu_erf});
    return plan.conv(h, scaled_weight(), scale_ * contract_->bias, {.add = y});
  }

 protected:
  at::Tensor run(const at::Tensor& y) override {
    const at::Tensor v = norm_->layer_norm(depthwise_(y));
    const at::Tensor h = ops::activate(expand_(v), ops::Activation::gelu_erf);
    return y + ops::dense(h, scaled_weight(), scale_ * contract_->bias);
  }

 private:
  at::Tensor scaled_weight() const { return scale_.unsqueeze(1) * contract_->weight; }

  Depthwise depthwise_{nullptr};
  Norm norm_{nullptr};
  Dense expand_{nullptr}, contract_{nullptr};
  at::Tensor scale_;
};

}  // namespace

std::shared_ptr<ActivationBlockImpl> make_convnext_block(const BlockOptions& options, const Stream& stream) {
  return std::make_shared<ConvNextBlock>(options, stream);
}

}  // namespace convssm::nn
