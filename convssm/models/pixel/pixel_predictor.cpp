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

// Frames that start() and forecasts() run through the core at once.
constexpr int64_t kContextFrames = 16;

constexpr const char* kFrame = "frame";

int64_t padding(int64_t size, int64_t multiple) { return (multiple - size % multiple) % multiple; }

}  // namespace

PixelOptions::PixelOptions() { core = {{"name", "convs5"}, {"features", 256}, {"state_size", 256}, {"layers", 8}}; }

PixelOptions PixelOptions::from_json(const nlohmann::json& json) {
  PixelOptions o;
  OptionReader read("model", json);
  o.read_from(read);
  read("loss_weight", o.loss_weight);
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
  encoder_ = register_module("encoder", nn::Encoder(options.channels, options.encoder, stream.split("encoder")));
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
  dynamics_.actions().check(operation, clips.actions);
}

void PixelPredictorImpl::check_data(const data::DataFormat& data) const {
  if (!data.codes.none()) {
    fail(ErrorKind::usage, "the data holds codes of a tokenizer, this model takes frames; set model.name=codes");
  }
  dynamics_.actions().check_data(data.actions);
}

at::Tensor PixelPredictorImpl::features_of(const at::Tensor& frames) {
  at::Tensor x = frames;
  if (pad_height_ > 0 || pad_width_ > 0) x = at::replication_pad2d(x, {0, pad_width_, 0, pad_height_});
  return encoder_(x);
}

cores::CoreOutput PixelPredictorImpl::run_core(const at::Tensor& frames, const at::Tensor& coming, const State& inner,
                                               const data::ClipTiming& timing) {
  return dynamics_.run(features_of(time_first(frames)), frames.size(0), coming, inner, timing);
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
  const at::Tensor seen = (clips.inputs.defined() ? clips.inputs : clips.video).slice(1, 0, L);
  const at::Tensor coming = slice_actions(clips.actions, 1, L + 1);
  auto out = run_core(seen, coming, core_state(start), slice_timing(clips.timing, 0, L));
  at::Tensor difference = decode(out.y.flatten(0, 1)) - time_first(clips.video.slice(1, 1));
  if (clips.valid.defined()) difference = difference * time_first(clips.valid.slice(1, 1));

  const double row = static_cast<double>(options_.width * options_.channels);
  const at::Tensor l2 = at::mean(difference * difference) * row, l1 = at::mean(at::abs(difference)) * row;
  const at::Tensor total = options_.loss_weight * l2 + (1 - options_.loss_weight) * l1;
  return {total, {{"l1", l1.detach()}, {"l2", l2.detach()}}, make_state(out.state)};
}

at::Tensor PixelPredictorImpl::forecasts(const Clips& clips, const at::Tensor& coming) {
  at::NoGradGuard no_grad;
  check("forecasts", clips);
  const int64_t B = clips.batch(), T = clips.frames();
  at::Tensor all = at::empty(clips.video.sizes(), clips.video.options());
  State inner;
  for (int64_t k = 0; k < T; k += kContextFrames) {
    const int64_t end = std::min(k + kContextFrames, T);
    auto out = run_core(clips.video.slice(1, k, end), slice_actions(coming, k, end), inner,
                        slice_timing(clips.timing, k, end));
    const at::Tensor frames = at::clamp(decode(out.y.flatten(0, 1)), -1, 1);
    all.slice(1, k, end).copy_(frames.unflatten(0, {end - k, B}).transpose(0, 1));
    inner = std::move(out.state);
  }
  return all;
}

// The core after all frames but the last, each with the action that follows it.
State PixelPredictorImpl::take_in(const Clips& context) {
  const int64_t known = context.frames() - 1;
  State inner;
  for (int64_t k = 0; k < known; k += kContextFrames) {
    const int64_t end = std::min(k + kContextFrames, known);
    inner = run_core(context.video.slice(1, k, end), slice_actions(context.actions, k + 1, end + 1), inner,
                     slice_timing(context.timing, k, end))
                .state;
  }
  return inner;
}

State PixelPredictorImpl::start(const Clips& context, const Seeds&) {
  at::NoGradGuard no_grad;
  check("start", context);
  ops::require("start", context.frames() > 0, "a context needs at least 1 frame, got 0");
  const auto last = [](const at::Tensor& x) { return x.defined() ? x.select(1, x.size(1) - 1).clone() : x; };
  const data::ClipTiming& timing = context.timing;
  return make_state(take_in(context), kFrame, last(context.video), false,
                    {last(timing.dt), last(timing.resets), timing.step_rescale});
}

State PixelPredictorImpl::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const at::Tensor waiting = waiting_frame(state);
  ops::require_shape("observe", "frame", frame, waiting.sizes());
  const ssm::Timing timing = waiting_timing(state, waiting.size(0));
  State inner = core_state(state);
  if (!forecast_waits(state)) inner = dynamics_.step(features_of(waiting), action, inner, timing).state;
  return make_state(inner, kFrame, frame.clone(), false, {{}, {}, timing.step_rescale});
}

Forecast PixelPredictorImpl::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  const at::Tensor waiting = waiting_frame(state);
  const ssm::Timing timing = waiting_timing(state, waiting.size(0));
  auto out = dynamics_.step(features_of(waiting), action, core_state(state), timing);
  const at::Tensor frame = at::clamp(decode(out.y), -1, 1);
  return {frame, make_state(out.state, kFrame, frame, true, {{}, {}, timing.step_rescale})};
}

at::Tensor PixelPredictorImpl::waiting_frame(const State& state) const {
  return waiting_value(state, kFrame, {options_.channels, options_.height, options_.width}, at::kFloat);
}

int64_t PixelPredictorImpl::clips_in(const State& state) const { return waiting_frame(state).size(0); }

std::unique_ptr<FrameEngine> PixelPredictorImpl::compile(const EngineOptions& options) {
  return compiles() ? pixel::make_plan_engine(*this, options) : nullptr;
}

void PixelPredictorImpl::plan(nn::FramePlan& plan) {
  const std::vector<int64_t> sizes{plan.batch(), options_.channels, options_.height, options_.width};
  const at::Tensor frame = plan.door("frame", sizes), next = plan.door("next", sizes);
  const nn::Buffer x = plan.from_frame(frame, options_.height + pad_height_, options_.width + pad_width_);
  const nn::Buffer y = dynamics_.plan(plan, encoder_->plan(plan, x));
  plan.to_frame(decoder_->plan(plan, y), next);
}

std::string PixelPredictorImpl::description() const {
  return fmt::format("pixel predictor, {} core, {:.2f}M parameters", options_.core.value("name", "?"),
                     static_cast<double>(parameter_count(*this)) * 1e-6);
}

}  // namespace convssm::models
