// Frames are chosen before they are encoded: a step encodes K frames of a clip, however long it is.
#include "convssm/models/latent_fdm/latent_fdm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/models/codes/code_input.h"
#include "convssm/models/frame_input.h"
#include "convssm/models/latent_fdm/index_sets.h"
#include "convssm/ops/check.h"
#include "convssm/ops/normal_numbers.h"

namespace convssm::models {
namespace {

constexpr double kPixelClamp = 1, kLatentClamp = 4;

// Rows of x [B,T,...]: frame numbers[b,k] of clip[b,k].
at::Tensor chosen_frames(const at::Tensor& x, const FdmExample& example) {
  if (!x.defined()) return x;
  const at::Tensor rows = (example.clip * x.size(1) + example.numbers).flatten().to(x.device());
  return x.flatten(0, 1).index_select(0, rows).unflatten(0, example.clip.sizes());
}

at::Tensor per_frame(const at::Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1).unsqueeze(-1); }

}  // namespace

LatentFdm::LatentFdm(const LatentFdmOptions& options) : options_(options) {
  const Stream stream(options.seed, "latent_fdm");
  latent_fdm::DenoiserOptions& o = options_.denoiser;
  tokenizer_ = make_tokenizer(options.tokenizer);
  if (tokenizer_) {
    ops::require("model.tokenizer", tokenizer_.tokenizer->continuous(),
                 "latent_fdm needs a tokenizer of continuous latents (vqgan with quantizer: {{name: kl}}), got one of "
                 "codes; leave it out to diffuse pixels");
    register_frozen("tokenizer", tokenizer_.module);
    const data::CodeFormat grid = tokenizer_.tokenizer->codes();
    o.frame_channels = tokenizer_.tokenizer->features(), o.height = grid.height, o.width = grid.width;
    scale_ = register_buffer("scale", at::zeros({1}));
  } else {
    o.frame_channels = options.frames.depth(), o.height = options.frames.height, o.width = options.frames.width;
  }
  if (options_.sampler.clamp < 0) options_.sampler.clamp = tokenizer_ ? kLatentClamp : kPixelClamp;
  o.steps = options.diffusion.steps;
  o.check();
  clip_frames_ = register_buffer("clip_frames", at::zeros({1}, at::kLong));
  options_.actions.action_features = o.embedding();
  action_input_ = ActionInput(*this, options_.actions, stream);
  denoiser_ = register_module("denoiser", latent_fdm::Denoiser(o, stream.split("denoiser")));
  alpha_bars_ = latent_fdm::alpha_bars(options.diffusion);
}

data::FrameFormat LatentFdm::frame_format() const {
  return tokenizer_ ? data::FrameFormat::from_json(options_.tokenizer.at("frames")) : options_.frames;
}

at::TensorOptions LatentFdm::like() const { return denoiser_->parameters()[0].options().requires_grad(false); }

void LatentFdm::check(const char* operation, const Clips& clips) const {
  const data::FrameFormat format = frame_format();
  PixelInput{format.depth(), format.height, format.width}.inputs_of(operation, clips);
  check_untimed(operation, clips);
  action_input_.check(operation, clips.actions);
}

void LatentFdm::check_data(const data::DataFormat& data) const {
  if (!data.codes.none()) {
    fail(ErrorKind::usage,
         "the data holds codes of a tokenizer, this model takes frames: give it those they were made of");
  }
  const data::FrameFormat own = frame_format();
  if (tokenizer_ && (!own.same_size(data.frames) || !own.same_ranges(data.frames))) {
    fail(ErrorKind::usage, "the tokenizer takes frames of {} with values from {}, the data has {} from {}",
         own.size_text(), own.range_text(), data.frames.size_text(), data.frames.range_text());
  }
  action_input_.check_data(data.actions);
}

void LatentFdm::check_length(int64_t frames) const {
  const int64_t K = options_.scheme.frames;
  ops::require("model", K <= frames, "frames, which are denoised at once, must be at most train.frames = {}, got {}",
               frames, K);
}

at::Tensor LatentFdm::latents_of(const at::Tensor& video) {
  if (!tokenizer_) return video;
  at::NoGradGuard no_grad;
  return tokenizer_.tokenizer->encode(video);
}

at::Tensor LatentFdm::frames_of(const at::Tensor& latents) {
  return tokenizer_ ? tokenizer_.tokenizer->decode(latents / scale()) : latents.clamp(-1, 1);
}

at::Tensor LatentFdm::scale() const {
  return scale_.defined() ? at::where(scale_ > 0, scale_, at::ones_like(scale_)) : at::ones({1}, like());
}

// What the first batch of a training tells; a memory estimate puts buffers back.
void LatentFdm::learn_from(const at::Tensor& latents, int64_t frames) {
  if (!is_training() || clip_frames_.item<int64_t>() > 0) return;
  at::NoGradGuard no_grad;
  clip_frames_.fill_(frames);
  if (!scale_.defined()) return;
  const at::Tensor std = latents.to(at::kDouble).std();
  if (!at::isfinite(std).item<bool>())
    fail(ErrorKind::numeric, "the tokenizer makes NaN or infinity of the frames of the first batch");
  if (!(std.item<double>() > 0))
    fail(ErrorKind::data, "the latents of the first batch are all the same: nothing to learn");
  scale_.copy_(1 / std);
}

at::Tensor LatentFdm::masked_actions(int64_t B, int64_t T) const {
  const data::ActionFormat format = action_input_.format();
  const at::Device device = like().device();
  if (format.values > 0) return at::full({B, T, format.values}, NAN, like().dtype(at::kFloat));
  return at::full({B, T}, -1, at::TensorOptions(at::kLong).device(device));
}

at::Tensor LatentFdm::embedded(const at::Tensor& actions) const {
  return action_input_.embed(actions.flatten(0, 1), actions.size(0) * actions.size(1), like());
}

FdmExample LatentFdm::draw_example(int64_t clips, int64_t frames, const Stream& random) const {
  const latent_fdm::DenoiserOptions& o = options_.denoiser;
  const int64_t K = std::min(options_.scheme.frames, frames);
  FdmExample e;
  e.clip = at::empty({clips, K}, at::kLong);
  e.numbers = at::empty_like(e.clip), e.given = at::empty_like(e.clip), e.padding = at::empty_like(e.clip);
  e.steps = at::empty({clips}, at::kLong);
  for (int64_t b = 0; b < clips; ++b) {
    Stream own = random.split("example", static_cast<uint64_t>(b));
    const latent_fdm::IndexSet set = latent_fdm::draw_index_set(K, frames, own);
    for (int64_t k = 0; k < K; ++k) {
      const size_t i = static_cast<size_t>(k);
      const int64_t at = b * K + k;
      e.clip.data_ptr<int64_t>()[at] = set.padding[i] != 0 ? (b + 1) % clips : b;  // of one clip: itself
      e.numbers.data_ptr<int64_t>()[at] = set.frames[i];
      e.given.data_ptr<int64_t>()[at] = set.given[i];
      e.padding.data_ptr<int64_t>()[at] = set.padding[i];
    }
    e.steps.data_ptr<int64_t>()[b] = static_cast<int64_t>(own.below(static_cast<uint64_t>(options_.diffusion.steps)));
  }
  e.given = e.given.to(at::kBool), e.padding = e.padding.to(at::kBool);
  e.noise = ops::normal_numbers({clips, K, o.frame_channels, o.height, o.width}, random.split("noise"), like());
  return e;
}

LossOutput LatentFdm::loss(const Clips& clips, const LossContext& context, const State&) {
  check("loss", clips);
  return loss_of(clips, draw_example(clips.batch(), clips.frames(), context.random));
}

LossOutput LatentFdm::loss_of(const Clips& clips, const FdmExample& example) {
  check("loss", clips);
  const at::Device device = like().device();
  const auto here = [&](const at::Tensor& x) { return x.to(device); };
  const at::Tensor latents = latents_of(chosen_frames(clips.video, example));
  learn_from(latents, clips.frames());
  const at::Tensor x0 = latents * scale();
  at::Tensor bars = at::empty({example.steps.size(0)}, at::kDouble);
  for (int64_t b = 0; b < bars.numel(); ++b) {
    bars.data_ptr<double>()[b] = alpha_bars_[static_cast<size_t>(example.steps[b].item<int64_t>())];
  }
  const auto factor = [&](const at::Tensor& x) { return per_frame(x.sqrt().to(like()).unsqueeze(1)); };

  latent_fdm::NoisyFrames in;
  in.x = factor(bars) * x0 + factor(1 - bars) * example.noise;
  in.clean = clips.inputs.defined() ? latents_of(chosen_frames(clips.inputs, example)) * scale() : x0;
  in.given = here(example.given), in.numbers = here(example.numbers), in.steps = example.steps;
  if (example.padding.any().item<bool>()) in.padding = here(example.padding);
  if (takes_actions()) {
    const at::Tensor actions = clips.actions.defined() ? clips.actions : masked_actions(clips.batch(), clips.frames());
    in.actions = embedded(chosen_frames(actions, example));
  }
  at::Tensor weight = per_frame(in.given.logical_not()).to(x0.scalar_type()).expand_as(x0);
  if (!tokenizer_ && clips.valid.defined()) weight = weight * chosen_frames(clips.valid, example);
  const at::Tensor error = weight * (example.noise - denoiser_(in)).square(), loss = error.mean();
  const at::Tensor of_noise = error.detach().sum() / weight.sum().clamp_min(1);
  return {loss, {{"noise_error", of_noise}}, {}};
}

std::string LatentFdm::description() const {
  const latent_fdm::DenoiserOptions& o = options_.denoiser;
  return fmt::format("Latent FDM on {} of {}x{}x{}, {} frames at once, {:.2f}M parameters{}",
                     tokenizer_ ? "latents" : "pixels", o.frame_channels, o.height, o.width, options_.scheme.frames,
                     static_cast<double>(learned_count(*this)) * 1e-6, tokenizer_ ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
