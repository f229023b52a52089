// The likelihood of pixels keeps its constant, so that the loss is the negative evidence bound in nats.
#include "convssm/models/cwvae/frame_side.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "convssm/models/codes/code_loss.h"
#include "convssm/models/frame_input.h"

namespace convssm::models::cwvae {
namespace {

class PixelSide : public FrameSide {
 public:
  PixelSide(torch::nn::Module& owner, const PixelSideOptions& o, int64_t outputs, const Stream& stream) : options_(o) {
    const NetPlan plan = pixel_plan(o.channels, o.height, o.width, o.filters);
    features_ = plan.features;
    encoder_ = owner.register_module("encoder", DownNet(plan, stream.split("encoder")));
    decoder_ = owner.register_module("decoder", UpNet(outputs, plan, stream.split("decoder")));
  }

  int64_t features() const override { return features_; }

  at::Tensor inputs_of(const char* operation, const Clips& clips) const override {
    return pixels().inputs_of(operation, clips);
  }

  at::Tensor targets_of(const Clips& clips, const at::Tensor&) const override { return clips.video; }

  at::Tensor features_of(const at::Tensor& inputs) override { return encoder_((inputs + 1) / 2); }

  at::Tensor nll(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor& valid) override {
    const double sigma = options_.sigma, constant = std::log(sigma) + 0.5 * std::log(2 * std::numbers::pi);
    const at::Tensor difference = (mean_of(outputs) - (targets + 1) / 2) / sigma;
    at::Tensor each = 0.5 * difference * difference + constant;
    if (valid.defined()) each = each * valid;
    return each.flatten(1).sum(1);
  }

  at::Tensor frames_of(const at::Tensor& outputs) override { return at::clamp(mean_of(outputs), 0, 1) * 2 - 1; }

  void check_data(const data::DataFormat& data) const override { pixels().check_data(data); }

 private:
  PixelInput pixels() const { return {options_.channels, options_.height, options_.width}; }
  at::Tensor mean_of(const at::Tensor& outputs) { return at::tanh(decoder_(outputs)); }

  PixelSideOptions options_;
  int64_t features_ = 0;
  DownNet encoder_{nullptr};
  UpNet decoder_{nullptr};
};

class CodeSide : public FrameSide {
 public:
  CodeSide(torch::nn::Module& owner, const CodeInput& codes, int64_t filters, int64_t outputs, const Stream& stream)
      : codes_(codes) {
    const data::CodeFormat grid = codes.format();
    const NetPlan plan = code_plan(codes.features(), grid.count, grid.height, grid.width, filters);
    features_ = plan.features;
    encoder_ = owner.register_module("encoder", DownNet(plan, stream.split("encoder")));
    decoder_ = owner.register_module("decoder", UpNet(outputs, plan, stream.split("decoder")));
  }

  int64_t features() const override { return features_; }
  at::Tensor inputs_of(const char* operation, const Clips& clips) const override {
    return codes_.codes_of(operation, clips);
  }
  at::Tensor targets_of(const Clips&, const at::Tensor& inputs) const override { return inputs; }
  at::Tensor features_of(const at::Tensor& inputs) override { return encoder_(codes_.embed(inputs).contiguous()); }

  at::Tensor nll(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor&) override {
    return cross_entropy(decoder_(outputs), targets, 0).sum({1, 2});
  }

  // NaN where the network says none, by which generation knows that the model has diverged.
  at::Tensor frames_of(const at::Tensor& outputs) override {
    const at::Tensor logits = decoder_(outputs), sound = at::isfinite(logits).flatten(1).all(1);
    return codes_.frames_of(logits.argmax(1)).masked_fill(sound.logical_not().view({-1, 1, 1, 1}), NAN);
  }

  void check_data(const data::DataFormat& data) const override { codes_.check_data(data); }
  const CodeInput* codes() const override { return &codes_; }

 private:
  CodeInput codes_;
  int64_t features_ = 0;
  DownNet encoder_{nullptr};
  UpNet decoder_{nullptr};
};

}  // namespace

std::unique_ptr<FrameSide> make_pixel_side(torch::nn::Module& owner, const PixelSideOptions& options, int64_t outputs,
                                           const Stream& stream) {
  return std::make_unique<PixelSide>(owner, options, outputs, stream);
}

std::unique_ptr<FrameSide> make_code_side(torch::nn::Module& owner, const CodeInput& codes, int64_t filters,
                                          int64_t outputs, const Stream& stream) {
  return std::make_unique<CodeSide>(owner, codes, filters, outputs, stream);
}

}  // namespace convssm::models::cwvae
