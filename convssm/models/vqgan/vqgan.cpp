// The losses reach the autoencoder through its frames alone. So with a discriminator their gradients at the frames are taken
// once, weighed, and carried on from there: the perceptual network and the discriminator are not run backward twice, once
// for the weight and once for the parameters.
#include "convssm/models/vqgan/vqgan.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "convssm/base/error.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr double kCollapsed = 0.05;  // share of codes in use

at::Tensor gradient(const at::Tensor& of, const at::Tensor& by, bool keep_graph, const at::Tensor& seed = {}) {
  std::vector<at::Tensor> seeds;
  if (seed.defined()) seeds.push_back(seed);
  return torch::autograd::grad({of}, {by}, seeds, keep_graph)[0];
}

at::Tensor number(double value) { return at::scalar_tensor(value, at::kDouble); }

}  // namespace

at::Tensor adaptive_weight(const at::Tensor& nll, const at::Tensor& g, double weight) {
  const at::NoGradGuard no_grad;
  return (nll.norm() / (g.norm() + 1e-4)).clamp(0, 1e4) * weight;
}

VqGan::VqGan(const VqGanOptions& options) : options_(options) {
  const Stream stream(options.seed, "vqgan");
  const nn::VqCoderOptions& coder = options.autoencoder.coder;
  autoencoder_ =
      register_module("autoencoder", std::make_shared<VqAutoencoder>(options.autoencoder, stream.split("autoencoder")));
  began_with_ = register_buffer("began_with", at::zeros({1}));
  set_perceptual(nullptr);
  if (options.disc_weight == 0) return;
  options_.discriminator.channels = coder.channels;
  const int64_t height = options_.discriminator.map_size(coder.height),
                width = options_.discriminator.map_size(options.autoencoder.width);
  ops::require("model", height > 0 && width > 0,
               "discriminator.layers must leave something of frames of {} x {}, got {}; set it to less, or "
               "discriminator.weight: 0 for none",
               coder.height, options.autoencoder.width, options.discriminator.layers);
  discriminator_ =
      register_module("discriminator", nn::PatchDiscriminator(options_.discriminator, stream.split("discriminator")));
}

std::vector<Player> VqGan::players() const {
  Player autoencoder{"autoencoder", {}}, discriminator{"discriminator", {}, options_.disc_start};
  for (const auto& item : named_parameters()) {
    const bool of_discriminator = item.key().starts_with("discriminator.");
    (of_discriminator ? discriminator : autoencoder).parameters.emplace_back(item.key(), item.value());
  }
  if (!discriminator_) return {autoencoder};
  return {autoencoder, discriminator};
}

std::string VqGan::description() const {
  const CodeFormat grid = autoencoder_->codes();
  const std::string content = autoencoder_->continuous() ? fmt::format("{} numbers", autoencoder_->features())
                                                         : fmt::format("{} codes", grid.count);
  return fmt::format("vqgan, {} x {} of {} ({}), {:.1f}M parameters", grid.height, grid.width, content,
                     nn::name(options_.autoencoder.quantizer.kind),
                     static_cast<double>(parameter_count(*autoencoder_)) * 1e-6);
}

void VqGan::set_perceptual(std::shared_ptr<const metrics::Lpips> lpips, const std::string& missing) {
  lpips_ = std::move(lpips);
  lpips_missing_ = lpips_ || options_.perceptual == "none" ? "" : missing.empty() ? "nobody handed it in" : missing;
}

// Weights that come or go between two parts of a training would silently change what it learns.
void VqGan::keep_to_its_loss(bool by_lpips) {
  const double now = by_lpips ? 1 : 2, before = began_with_.item<double>();
  if (before == 0) began_with_.fill_(now);
  if (before == 0 || before == now) return;
  fail(ErrorKind::usage, "[model] this training began {}",
       by_lpips
           ? "without LPIPS, whose weights are here now; set CONVSSM_WEIGHTS to an empty folder to go on as it began"
           : "with LPIPS (" + options_.perceptual + ") and cannot go on without: " + lpips_missing_);
}

VqGan::Reconstruction VqGan::reconstruction(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor l1 = (x - y).abs().mean();
  if (lpips_ == nullptr) return {l1 + (x - y).square().mean(), l1, {}};
  const at::Tensor perceptual = lpips_->loss(x, y).mean();
  return {l1 + options_.perceptual_weight * perceptual, l1, perceptual};
}

LossOutput VqGan::autoencoder_loss(const at::Tensor& x, const at::Tensor& valid, const LossContext& context) {
  const bool learn = is_training() && at::GradMode::is_enabled();
  const bool restart = nn::codes_may_restart(context.step, context.steps);
  const auto [raw, quantized] = autoencoder_->forward(x, {learn, restart, context.random.split("quantizer"), true});
  const at::Tensor y = valid.defined() ? at::where(valid, raw, x) : raw;  // what was not measured is no error
  const auto [nll, l1, perceptual] = reconstruction(x, y);
  if (learn) keep_to_its_loss(perceptual.defined());
  const nn::Quantizer& quantizer = autoencoder_->quantizer();
  // The divergence is that of a frame, the reconstruction a mean over the values of a frame.
  const double per_value = quantizer.continuous() ? static_cast<double>(x.size(0)) / static_cast<double>(x.numel()) : 1;
  const at::Tensor codebook = options_.codebook_weight * per_value * quantized.loss;

  LossOutput out{nll + codebook, {{"l1", l1.detach()}}, {}};
  if (quantizer.continuous()) {
    out.parts.emplace_back("kl", quantized.divergence.detach());
  } else {
    out.parts.emplace_back("codebook", quantized.loss.detach());
  }
  if (perceptual.defined()) out.parts.emplace_back("lpips", perceptual.detach());
  if (discriminator_ && context.step >= options_.disc_start) {
    const at::Tensor g = -discriminator_->forward(y).mean();
    at::Tensor weight = at::zeros({}, y.options());
    if (y.requires_grad()) {
      const at::Tensor by_nll = gradient(nll, y, false), by_g = gradient(g, y, false);
      const at::Tensor& last = autoencoder_->last_weight();
      weight = adaptive_weight(gradient(y, last, true, by_nll), gradient(y, last, true, by_g), options_.disc_weight);
      // The value of the loss with the gradient that was taken above.
      const at::Tensor value = (nll + weight * g).detach(), slope = by_nll + weight * by_g;
      out.loss = value + (slope * (y - y.detach())).sum() + codebook;
    }
    out.parts.emplace_back("gan", g.detach());
    out.parts.emplace_back("weight", weight);
  }
  if (!quantizer.continuous()) {
    out.parts.emplace_back("perplexity", number(quantizer.perplexity()));
    out.parts.emplace_back("used", number(quantizer.used()));
  }
  // A training says each text once: the one that is true from the first step on does not stand before the other.
  if (quantizer.seen_enough() && quantizer.used() < kCollapsed) {
    out.warning =
        "less than 5% of the codes are in use: the table has collapsed. Try model.quantizer.name=ema or fsq, "
        "fewer codes (size), or a smaller train.lr";
  } else if (!lpips_missing_.empty()) {
    out.warning = fmt::format(
        "the loss is absolute + squared error and reconstructions will be blurred, for there is no "
        "LPIPS ({}): {}",
        options_.perceptual, lpips_missing_);
  }
  return out;
}

LossOutput VqGan::discriminator_loss(const at::Tensor& x, const LossContext& context) {
  at::Tensor fake;
  {
    const at::NoGradGuard no_grad;
    fake = autoencoder_->forward(x, {.random = context.random.split("quantizer"), .draw = true}).frames;
  }
  const bool learn = is_training() && at::GradMode::is_enabled();
  const at::Tensor on_real = at::relu(1 - discriminator_->forward(x, learn)).mean(),
                   on_fake = at::relu(1 + discriminator_->forward(fake, learn)).mean();
  return {0.5 * (on_real + on_fake), {{"real", on_real.detach()}, {"fake", on_fake.detach()}}, {}};
}

LossOutput VqGan::loss(const Clips& clips, const LossContext& context, const State&) {
  ops::require("vqgan", clips.video.defined(), "this model needs the video of the clips, they have none");
  const nn::VqCoderOptions& o = options_.autoencoder.coder;
  const at::Tensor& video = clips.video;
  ops::require("vqgan",
               video.size(2) == o.channels && video.size(3) == o.height && video.size(4) == options_.autoencoder.width,
               "video must be [B,T,{},{},{}], the frames of this model, got {}", o.channels, o.height,
               options_.autoencoder.width, ops::shape_text(video.sizes()));
  const at::Tensor x = video.flatten(0, 1);
  if (context.player == "discriminator") {
    ops::require("vqgan", !discriminator_.is_empty(), "this model has no discriminator");
    return discriminator_loss(x, context);
  }
  return autoencoder_loss(x, clips.valid.defined() ? clips.valid.flatten(0, 1) : at::Tensor(), context);
}

}  // namespace convssm::models
