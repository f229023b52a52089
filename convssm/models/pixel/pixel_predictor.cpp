// Frames of sizes that the encoder cannot halve are padded at their right and bottom edge.
#include "convssm/models/pixel/pixel_predictor.h"

#include <ATen/ATen.h>

#include "convssm/base/option_reader.h"
#include "convssm/models/pixel/plan_engine.h"
#include "convssm/models/waiting_state.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"

namespace convssm::models {
namespace {

int64_t padding(int64_t size, int64_t multiple) { return (multiple - size % multiple) % multiple; }

// The mean of `each` over the pixels that count; all if `valid` is undefined.
at::Tensor mean_of(const at::Tensor& each, const at::Tensor& valid) {
  if (!valid.defined()) return at::mean(each);
  const at::Tensor counted = at::where(valid, each, at::zeros({}, each.options()));
  return counted.sum() / valid.sum().clamp_min(1).to(each.scalar_type());
}

}  // namespace

PixelOptions::PixelOptions() {
  actions.takes_maps = true;
  core = {{"name", "convs5"}, {"features", 256}, {"state_size", 256}, {"layers", 8}};
}

PixelOptions PixelOptions::from_json(const nlohmann::json& json) {
  PixelOptions o;
  OptionReader read("model", json);
  o.read_from(read);
  read("loss_weight", o.loss_weight);
  read("mask_input", o.mask_input);
  read.finish();
  return o;
}

void check_pixel_options(const nlohmann::json& json) { check_core_options(PixelOptions::from_json(json).core); }

PixelPredictorImpl::PixelPredictorImpl(const PixelOptions& options) : options_(options) {
  ops::require("model", options.channels > 0 && options.height > 0 && options.width > 0,
               "frames must not be empty, got {} channels of {} x {}", options.channels, options.height, options.width);
  ops::require("model", options.loss_weight >= 0 && options.loss_weight <= 1, "loss_weight must be in [0,1], got {}",
               options.loss_weight);

  const Stream stream(options.seed, "pixel predictor");
  const int64_t scale = options.encoder.scale();
  pad_height_ = padding(options.height, scale);
  pad_width_ = padding(options.width, scale);
  input_ = pixel::EncoderInput({options.channels, options.seen, options.mask_input, options.actions.action_maps});
  encoder_ = register_module("encoder", nn::Encoder(input_.channels(), options.encoder, stream.split("encoder")));
  const cores::FrameShape latent{options.encoder.depths.back(), (options.height + pad_height_) / scale,
                                 (options.width + pad_width_) / scale};
  dynamics_ = Dynamics(*this, options.core, options.actions, latent, stream);
  decoder_ = register_module(
      "decoder", nn::Decoder(dynamics_.out_channels(), options.channels, options.decoder, stream.split("decoder")));
}

void PixelPredictorImpl::check(const char* operation, const Clips& clips) const {
  ops::require(operation, clips.video.defined(), "this model needs the video of the clips, they have none");
  data::check_clips(operation, clips);
  const at::Tensor& video = clips.video;
  const bool fits =
      video.size(2) == options_.channels && video.size(3) == options_.height && video.size(4) == options_.width;
  ops::require(operation, fits, "video must be [B,T,{},{},{}], the frames of this model, got {}", options_.channels,
               options_.height, options_.width, ops::shape_text(video.sizes()));
  dynamics_.actions().check(operation, clips.actions, options_.height, options_.width);
}

void PixelPredictorImpl::check_data(const data::DataFormat& data) const {
  if (!data.codes.none()) {
    fail(ErrorKind::usage, "the data holds codes of a tokenizer, this model takes frames; set model.name=codes");
  }
  dynamics_.actions().check_data(data.actions);
}

data::ActionFormat PixelPredictorImpl::actions() const {
  data::ActionFormat format = dynamics_.actions().format();
  if (format.maps > 0) format.height = options_.height, format.width = options_.width;
  return format;
}

double PixelPredictorImpl::loss_terms(const Clips& clips) const {
  return clips.valid.defined() ? clips.valid.slice(1, 1).sum().item<double>() : Model::loss_terms(clips);
}

at::Tensor PixelPredictorImpl::features_of(const at::Tensor& frames, const at::Tensor& measured,
                                           const at::Tensor& coming) {
  at::Tensor x = input_.join(frames, measured, takes_maps() ? coming : at::Tensor());
  if (pad_height_ > 0 || pad_width_ > 0) x = at::replication_pad2d(x, {0, pad_width_, 0, pad_height_});
  return encoder_(x);
}

cores::CoreOutput PixelPredictorImpl::run_core(const at::Tensor& frames, const at::Tensor& valid,
                                               const at::Tensor& coming, const State& inner,
                                               const data::ClipTiming& timing) {
  const auto turned = [](const at::Tensor& x) { return x.defined() ? time_first(x) : x; };
  const at::Tensor measured = input_.masks() && valid.defined() ? input_.seen_of(turned(valid)) : at::Tensor();
  const at::Tensor maps = takes_maps() ? turned(coming) : at::Tensor();
  return dynamics_.run(features_of(time_first(frames), measured, maps), frames.size(0),
                       takes_maps() ? at::Tensor() : coming, inner, timing);
}

at::Tensor PixelPredictorImpl::decode(const at::Tensor& features) {
  const at::Tensor y = at::tanh(decoder_(features));
  return y.slice(2, 0, options_.height).slice(3, 0, options_.width);
}

LossOutput PixelPredictorImpl::loss(const Clips& clips, const LossContext&, const State& start) {
  check("loss", clips);
  const int64_t L = clips.frames() - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames (train.frames), one to see and one to predict, got {}",
               clips.frames());
  const bool given = clips.inputs.defined();
  const at::Tensor seen = (given ? clips.inputs : clips.video).slice(1, 0, L);
  const at::Tensor valid = given && clips.inputs_valid.defined() ? clips.inputs_valid : clips.valid;
  const at::Tensor coming = slice_actions(clips.actions, 1, L + 1);
  auto out = run_core(seen, slice_actions(valid, 0, L), coming, core_state(start), slice_timing(clips.timing, 0, L));
  const at::Tensor difference = decode(out.y.flatten(0, 1)) - time_first(clips.video.slice(1, 1));
  const at::Tensor counts = clips.valid.defined() ? time_first(clips.valid.slice(1, 1)) : at::Tensor();

  const double row = static_cast<double>(options_.width * options_.channels);
  const at::Tensor l2 = mean_of(difference * difference, counts) * row, l1 = mean_of(at::abs(difference), counts) * row;
  const at::Tensor total = options_.loss_weight * l2 + (1 - options_.loss_weight) * l1;
  return {total, {{"l1", l1.detach()}, {"l2", l2.detach()}}, make_state(out.state)};
}

std::unique_ptr<FrameEngine> PixelPredictorImpl::compile(const EngineOptions& options) {
  return compiles() ? pixel::make_plan_engine(*this, options) : nullptr;
}

void PixelPredictorImpl::plan(nn::FramePlan& plan) {
  const int64_t B = plan.batch(), H = options_.height, W = options_.width;
  const at::Tensor input = plan.door("input", {B, input_.channels(), H, W}),
                   next = plan.door("next", {B, options_.channels, H, W});
  const nn::Buffer x = plan.from_frame(input, H + pad_height_, W + pad_width_);
  // Masks and maps may be still while ranges are watched, and not later: they go in exactly.
  const nn::Buffer y = dynamics_.plan(plan, encoder_->plan(plan, x, input_.beside()));
  plan.to_frame(decoder_->plan(plan, y), next);
}

std::string PixelPredictorImpl::description() const {
  return fmt::format("pixel predictor, {} core, {:.2f}M parameters", options_.core.value("name", "?"),
                     static_cast<double>(parameter_count(*this)) * 1e-6);
}

}  // namespace convssm::models
