// The pixel predictor. A frame waits in the state until the action that follows it is known: core_t sees frame t together
// with action t+1, so start() leaves the last frame of the context out and next() takes it in.
#include "convssm/models/pixel/pixel_predictor.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/base/option_reader.h"
#include "convssm/models/pixel/pixel_state.h"
#include "convssm/models/pixel/plan_engine.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {
namespace {

// Frames that start() and forecasts() run through the core at once.
constexpr int64_t kContextFrames = 16;

int64_t padding(int64_t size, int64_t multiple) { return (multiple - size % multiple) % multiple; }

// [B,T,...] -> [T*B,...], frames of one time together as the cores want them.
at::Tensor time_first(const at::Tensor& x) { return x.transpose(0, 1).flatten(0, 1); }

// Takes the name out of the options of a core.
std::string take_core_name(nlohmann::json& options) {
  ops::require("model.core", options.contains("name") && options["name"].is_string(),
               "expected a name such as convs5 (`convssm models` lists them), got {}", options.dump());
  const std::string name = options["name"];
  options.erase("name");
  return name;
}

std::shared_ptr<cores::FrameCore> make_core(nlohmann::json options, const cores::FrameShape& latent, Stream stream) {
  const std::string name = take_core_name(options);
  return cores::make_frame_core(name, options, latent, stream.next());
}

// Frames-first timing of the cores, [L,B].
ssm::Timing core_timing(const data::ClipTiming& timing) {
  const auto turned = [](const at::Tensor& x) { return x.defined() ? x.t() : x; };
  return {turned(timing.dt), turned(timing.resets), timing.step_rescale};
}

data::ClipTiming slice_timing(const data::ClipTiming& timing, int64_t begin, int64_t end) {
  const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.slice(1, begin, end) : x; };
  return {cut(timing.dt), cut(timing.resets), timing.step_rescale};
}

at::Tensor slice_actions(const at::Tensor& actions, int64_t begin, int64_t end) {
  return actions.defined() ? actions.slice(1, begin, end) : actions;
}

}  // namespace

PixelOptions PixelOptions::from_json(const nlohmann::json& json) {
  PixelOptions o;
  nlohmann::json encoder = nlohmann::json::object(), decoder = nlohmann::json::object();
  OptionReader read("model", json);
  read("encoder", encoder);
  read("decoder", decoder);
  read("core", o.core);
  read("actions", o.actions);
  read("action_values", o.action_values);
  read("action_features", o.action_features);
  read("loss_weight", o.loss_weight);
  read("seed", o.seed);
  read.finish();
  o.encoder = nn::CoderOptions::from_json("model.encoder", encoder);
  o.decoder = nn::CoderOptions::from_json("model.decoder", decoder);
  return o;
}

void check_pixel_options(const nlohmann::json& json) {
  nlohmann::json core = PixelOptions::from_json(json).core;
  const std::string name = take_core_name(core);
  cores::check_frame_core(name, core);
}

PixelPredictorImpl::PixelPredictorImpl(const PixelOptions& options) : options_(options) {
  ops::require("model", options.channels > 0 && options.height > 0 && options.width > 0,
               "frames must not be empty, got {} channels of {} x {}", options.channels, options.height, options.width);
  ops::require("model", options.encoder.depths.size() == options.decoder.depths.size(),
               "encoder and decoder need as many depths as each other, got {} and {}", options.encoder.depths.size(),
               options.decoder.depths.size());
  ops::require("model", options.actions >= 0 && options.action_features > 0,
               "actions must not be negative and action_features positive, got {} and {}", options.actions,
               options.action_features);
  ops::require("model", options.action_values >= 0 && (options.action_values == 0 || options.actions <= 1),
               "take either actions (whole numbers) or action_values (numbers), got {} and {}", options.actions,
               options.action_values);
  ops::require("model", options.loss_weight >= 0 && options.loss_weight <= 1, "loss_weight must be in [0,1], got {}",
               options.loss_weight);

  const Stream stream(options.seed, "pixel predictor");
  const int64_t scale = options.encoder.scale();
  pad_height_ = padding(options.height, scale);
  pad_width_ = padding(options.width, scale);
  encoder_ = register_module("encoder", nn::Encoder(options.channels, options.encoder, stream.split("encoder")));
  int64_t features = options.encoder.depths.back();
  if (options.action_values > 0) {
    action_layer_ = register_module(
        "actions", nn::Dense(options.action_values + 1, options.action_features, stream.split("actions")));
    features += options.action_features;
  } else if (options.actions > 0) {
    Stream own = stream.split("actions");
    const double std = 1 / std::sqrt(static_cast<double>(options.action_features));
    action_table_ =
        register_parameter("actions", ssm::normal({options.actions + 1, options.action_features}, std, own));
    features += options.action_features;
  }
  const cores::FrameShape latent{features, (options.height + pad_height_) / scale,
                                 (options.width + pad_width_) / scale};
  core_ = register_module("core", make_core(options.core, latent, stream.split("core")));
  decoder_ = register_module(
      "decoder", nn::Decoder(core_->out_channels(), options.channels, options.decoder, stream.split("decoder")));
}

void PixelPredictorImpl::check(const char* operation, const Clips& clips) const {
  ops::require(operation, clips.video.defined(), "this model needs the video of the clips, they have none");
  data::check_clips(operation, clips);
  const at::Tensor& video = clips.video;
  const bool fits =
      video.size(2) == options_.channels && video.size(3) == options_.height && video.size(4) == options_.width;
  ops::require(operation, fits, "video must be [B,T,{},{},{}], the frames of this model, got {}", options_.channels,
               options_.height, options_.width, ops::shape_text(video.sizes()));
  if (!clips.actions.defined() || (!action_table_.defined() && !action_layer_)) return;
  const int64_t values = clips.actions.dim() == 3 ? clips.actions.size(2) : 0;
  ops::require(operation, values == options_.action_values, "actions must be {}, got {}",
               options_.action_values > 0 ? fmt::format("[B,T,{}] numbers", options_.action_values)
                                          : std::string("[B,T] whole numbers"),
               ops::shape_text(clips.actions.sizes()));
}

void PixelPredictorImpl::check_data(const data::FrameFormat&, const data::ActionFormat& actions) const {
  if (this->actions().matter() && actions.none()) {
    fail(
        ErrorKind::usage,
        "the model takes actions (model.{}), the data has none; give it an array of actions (data.actions_key), or set "
        "model.actions=1 model.action_values=0",
        options_.action_values > 0 ? fmt::format("action_values={}", options_.action_values)
                                   : fmt::format("actions={}", options_.actions));
  }
  if (options_.actions > 0 && options_.action_values == 0 && actions.count > options_.actions) {
    fail(ErrorKind::usage, "the data has {} actions, the model {}; set model.actions={} (or 0 to leave them out)",
         actions.count, options_.actions, actions.count);
  }
  const bool takes_none = options_.actions == 0 && options_.action_values == 0;
  if (takes_none || actions.values == options_.action_values) return;
  fail(ErrorKind::usage, "the actions of the data are {} numbers, the model takes {}; set model.action_values={}",
       actions.values, options_.action_values, actions.values);
}

at::Tensor PixelPredictorImpl::embed_actions(const at::Tensor& actions, int64_t N, const at::TensorOptions& like) {
  if (action_layer_) {
    if (!actions.defined()) return action_layer_(at::zeros({N, options_.action_values + 1}, like));
    const at::Tensor masked = at::isnan(actions).any(1, true);
    const at::Tensor values = at::where(masked, at::zeros({}, like), actions.to(like));
    return action_layer_(at::cat({values, masked.to(like)}, 1));
  }
  const int64_t largest = actions.defined() && N > 0 ? actions.max().item<int64_t>() : 0;
  ops::require("model", largest < options_.actions, "actions must be below model.actions = {}, got {}",
               options_.actions, largest);
  const at::Tensor rows =
      actions.defined() ? at::where(actions < 0, options_.actions, actions) : at::zeros({N}, like.dtype(at::kLong));
  return at::embedding(action_table_, rows);
}

at::Tensor PixelPredictorImpl::core_input(const at::Tensor& frames, const at::Tensor& actions) {
  at::Tensor x = frames;
  if (pad_height_ > 0 || pad_width_ > 0) x = at::replication_pad2d(x, {0, pad_width_, 0, pad_height_});
  const at::Tensor f = encoder_(x);
  if (!action_table_.defined() && !action_layer_) return f;
  const int64_t N = f.size(0);
  const at::Tensor embedded = embed_actions(actions, N, f.options()).unsqueeze(-1).unsqueeze(-1);
  return at::cat({f, embedded.expand({N, options_.action_features, f.size(2), f.size(3)})}, 1);
}

cores::CoreOutput PixelPredictorImpl::run_core(const at::Tensor& frames, const at::Tensor& coming, const State& inner,
                                               const data::ClipTiming& timing) {
  const int64_t B = frames.size(0), L = frames.size(1);
  const at::Tensor x = core_input(time_first(frames), coming.defined() ? time_first(coming) : coming);
  return core_->forward(x.view({L, B, x.size(1), x.size(2), x.size(3)}), inner, core_timing(timing));
}

at::Tensor PixelPredictorImpl::decode(const at::Tensor& features) {
  const at::Tensor y = at::tanh(decoder_(features));
  return y.slice(2, 0, options_.height).slice(3, 0, options_.width);
}

std::string PixelPredictorImpl::obstacle_to_chunks() const {
  if (!core_->constant_state()) {
    return "it needs a core whose state does not grow; expected chunk_frames: 0, or a transformer with a window";
  }
  if (core_->draws_noise()) return "every chunk is run twice, so the dropout of the core must be 0";
  return "";
}

LossOutput PixelPredictorImpl::loss(const Clips& clips, const LossContext&, const State& start) {
  check("loss", clips);
  const int64_t L = clips.frames() - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames (train.frames), one to see and one to predict, got {}",
               clips.frames());
  const at::Tensor seen = (clips.inputs.defined() ? clips.inputs : clips.video).slice(1, 0, L);
  const at::Tensor coming = slice_actions(clips.actions, 1, L + 1);
  auto out = run_core(seen, coming, pixel::core_state(start), slice_timing(clips.timing, 0, L));
  at::Tensor difference = decode(out.y.flatten(0, 1)) - time_first(clips.video.slice(1, 1));
  if (clips.valid.defined()) difference = difference * time_first(clips.valid.slice(1, 1));

  const double row = static_cast<double>(options_.width * options_.channels);
  const at::Tensor l2 = at::mean(difference * difference) * row, l1 = at::mean(at::abs(difference)) * row;
  const at::Tensor total = options_.loss_weight * l2 + (1 - options_.loss_weight) * l1;
  return {total, {{"l1", l1.detach()}, {"l2", l2.detach()}}, pixel::make_state(out.state, {}, false)};
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
  return pixel::make_state(take_in(context), last(context.video), false,
                           {last(timing.dt), last(timing.resets), timing.step_rescale});
}

State PixelPredictorImpl::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const at::Tensor waiting = pixel::waiting_frame(state, options_.channels, options_.height, options_.width);
  ops::require_shape("observe", "frame", frame, waiting.sizes());
  const ssm::Timing timing = pixel::waiting_timing(state, waiting.size(0));
  State inner = pixel::core_state(state);
  if (!pixel::forecast_waits(state)) inner = core_->step(core_input(waiting, action), inner, timing).state;
  return pixel::make_state(inner, frame.clone(), false, {{}, {}, timing.step_rescale});
}

Forecast PixelPredictorImpl::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  const at::Tensor waiting = pixel::waiting_frame(state, options_.channels, options_.height, options_.width);
  const ssm::Timing timing = pixel::waiting_timing(state, waiting.size(0));
  auto out = core_->step(core_input(waiting, action), pixel::core_state(state), timing);
  const at::Tensor frame = at::clamp(decode(out.y), -1, 1);
  return {frame, pixel::make_state(out.state, frame, true, {{}, {}, timing.step_rescale})};
}

data::ActionFormat PixelPredictorImpl::actions() const {
  return options_.action_values > 0 ? data::ActionFormat{0, options_.action_values}
                                    : data::ActionFormat{options_.actions};
}

int64_t PixelPredictorImpl::clips_in(const State& state) const {
  return pixel::waiting_frame(state, options_.channels, options_.height, options_.width).size(0);
}

bool PixelPredictorImpl::compiles() const {
  return core_->has_plan() && options_.action_values == 0 && ops::takes_kernels(parameters()[0]);
}

std::unique_ptr<FrameEngine> PixelPredictorImpl::compile(const EngineOptions& options) {
  return compiles() ? pixel::make_plan_engine(*this, options) : nullptr;
}

void PixelPredictorImpl::plan(nn::FramePlan& plan) {
  const std::vector<int64_t> sizes{plan.batch(), options_.channels, options_.height, options_.width};
  const at::Tensor frame = plan.door("frame", sizes), next = plan.door("next", sizes);
  const at::Tensor action = action_table_.defined() ? plan.door("action", {plan.batch()}, at::kLong) : at::Tensor();
  const nn::Buffer x = plan.from_frame(frame, options_.height + pad_height_, options_.width + pad_width_);
  const nn::Buffer features = encoder_->plan(plan, x);
  plan.set_scope("core.");
  const nn::Buffer y = core_->plan_with_rows(plan, features, action_table_, action);
  plan.set_scope("");
  plan.mark_states();
  plan.to_frame(decoder_->plan(plan, y), next);
}

std::string PixelPredictorImpl::description() const {
  return fmt::format("pixel predictor, {} core, {:.2f}M parameters", options_.core.value("name", "?"),
                     static_cast<double>(parameter_count(*this)) * 1e-6);
}

}  // namespace convssm::models
