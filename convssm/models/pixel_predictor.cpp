#include "convssm/models/pixel_predictor.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/base/option_reader.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {
namespace {

// Frames that start() and forecasts() run through the core at once.
constexpr int64_t kContextFrames = 16;

int64_t padding(int64_t size, int64_t multiple) { return (multiple - size % multiple) % multiple; }

// [B,T,...] -> [T*B,...], frames of one time together as the cores want them.
at::Tensor time_first(const at::Tensor& x) { return x.transpose(0, 1).flatten(0, 1); }

std::shared_ptr<cores::FrameCore> make_core(nlohmann::json options, const cores::FrameShape& latent, Stream stream) {
  ops::require("model.core", options.contains("name") && options["name"].is_string(),
               "expected a name such as convs5 (`convssm models` lists them), got {}", options.dump());
  const std::string name = options["name"];
  options.erase("name");
  return cores::make_frame_core(name, options, latent, stream.next());
}

State core_state(const State& state) {
  State inner;
  for (const auto& [name, value] : state.items()) {
    if (name.starts_with("core.")) inner.set(name.substr(5), value);
  }
  return inner;
}

State model_state(const State& core, const at::Tensor& frame) {
  State outer;
  for (const auto& [name, value] : core.items()) outer.set("core." + name, value);
  if (frame.defined()) outer.set("frame", frame);
  return outer;
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
  read("action_features", o.action_features);
  read("loss_weight", o.loss_weight);
  read("seed", o.seed);
  read.finish();
  o.encoder = nn::CoderOptions::from_json("model.encoder", encoder);
  o.decoder = nn::CoderOptions::from_json("model.decoder", decoder);
  return o;
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
  ops::require("model", options.loss_weight >= 0 && options.loss_weight <= 1, "loss_weight must be in [0,1], got {}",
               options.loss_weight);

  const Stream stream(options.seed, "pixel predictor");
  const int64_t scale = options.encoder.scale();
  pad_height_ = padding(options.height, scale);
  pad_width_ = padding(options.width, scale);
  encoder_ = register_module("encoder", nn::Encoder(options.channels, options.encoder, stream.split("encoder")));
  int64_t features = options.encoder.depths.back();
  if (options.actions > 0) {
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

void PixelPredictorImpl::check_clip(const char* operation, const at::Tensor& video, const at::Tensor& actions) const {
  ops::require_dims(operation, "video", video, 5, "[B,T,C,H,W]");
  const bool fits =
      video.size(2) == options_.channels && video.size(3) == options_.height && video.size(4) == options_.width;
  ops::require(operation, fits, "video must be [B,T,{},{},{}], the frames of this model, got {}", options_.channels,
               options_.height, options_.width, ops::shape_text(video.sizes()));
  if (actions.defined()) {
    ops::require_shape(operation, "actions", actions, {video.size(0), video.size(1)});
    ops::require(operation, actions.scalar_type() == at::kLong, "actions must be int64, got {}",
                 ops::dtype_text(actions));
  }
}

at::Tensor PixelPredictorImpl::core_input(const at::Tensor& frames, const at::Tensor& actions) {
  at::Tensor x = frames;
  if (pad_height_ > 0 || pad_width_ > 0) x = at::replication_pad2d(x, {0, pad_width_, 0, pad_height_});
  const at::Tensor f = encoder_(x);
  if (!action_table_.defined()) return f;
  const int64_t N = f.size(0);
  const int64_t largest = actions.defined() && N > 0 ? actions.max().item<int64_t>() : 0;
  ops::require("model", largest < options_.actions, "actions must be below model.actions = {}, got {}",
               options_.actions, largest);
  const at::Tensor rows = actions.defined() ? at::where(actions < 0, options_.actions, actions)
                                            : at::zeros({N}, f.options().dtype(at::kLong));
  const at::Tensor embedded = at::embedding(action_table_, rows).unsqueeze(-1).unsqueeze(-1);
  return at::cat({f, embedded.expand({N, options_.action_features, f.size(2), f.size(3)})}, 1);
}

cores::CoreOutput PixelPredictorImpl::run_core(const at::Tensor& frames, const at::Tensor& coming, const State& inner,
                                               const ssm::Timing& timing) {
  const int64_t B = frames.size(0), L = frames.size(1);
  const at::Tensor x = core_input(time_first(frames), coming.defined() ? time_first(coming) : coming);
  return core_->forward(x.view({L, B, x.size(1), x.size(2), x.size(3)}), inner, timing);
}

at::Tensor PixelPredictorImpl::decode(const at::Tensor& features) {
  const at::Tensor y = at::tanh(decoder_(features));
  return y.slice(2, 0, options_.height).slice(3, 0, options_.width);
}

LossOutput PixelPredictorImpl::loss(const at::Tensor& video, const at::Tensor& actions, const State& start,
                                    const at::Tensor& inputs) {
  check_clip("loss", video, actions);
  if (inputs.defined()) ops::require_shape("loss", "inputs", inputs, video.sizes().vec());
  const int64_t L = video.size(1) - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames, got {}", video.size(1));
  const at::Tensor coming = actions.defined() ? actions.slice(1, 1) : actions;
  auto out = run_core((inputs.defined() ? inputs : video).slice(1, 0, L), coming, core_state(start));
  const at::Tensor difference = decode(out.y.flatten(0, 1)) - time_first(video.slice(1, 1));

  const double row = static_cast<double>(options_.width * options_.channels);
  const at::Tensor l2 = at::mean(difference * difference) * row, l1 = at::mean(at::abs(difference)) * row;
  const at::Tensor total = options_.loss_weight * l2 + (1 - options_.loss_weight) * l1;
  return {total, {{"l1", l1.detach()}, {"l2", l2.detach()}}, model_state(out.state, {})};
}

at::Tensor PixelPredictorImpl::forecasts(const at::Tensor& video, const at::Tensor& actions,
                                         const ssm::Timing& timing) {
  at::NoGradGuard no_grad;
  check_clip("forecasts", video, actions);
  const int64_t B = video.size(0), T = video.size(1);
  ssm::check_timing("forecasts", timing, T, B);
  at::Tensor all = at::empty(video.sizes(), video.options());
  State inner;
  for (int64_t k = 0; k < T; k += kContextFrames) {
    const int64_t end = std::min(k + kContextFrames, T);
    const at::Tensor coming = actions.defined() ? actions.slice(1, k, end) : actions;
    auto out = run_core(video.slice(1, k, end), coming, inner, ssm::slice(timing, k, end));
    const at::Tensor frames = at::clamp(decode(out.y.flatten(0, 1)), -1, 1);
    all.slice(1, k, end).copy_(frames.unflatten(0, {end - k, B}).transpose(0, 1));
    inner = std::move(out.state);
  }
  return all;
}

State PixelPredictorImpl::start(const at::Tensor& context, const at::Tensor& actions, const State& state) {
  check_clip("start", context, actions);
  const int64_t B = context.size(0);
  State inner = core_state(state);
  at::Tensor frames = context, moves = actions;
  if (!state.empty()) {  // the frame that waited for its successor goes in first
    frames = at::cat({state.get("frame").unsqueeze(1), frames}, 1);
    if (moves.defined()) moves = at::cat({at::full({B, 1}, -1, moves.options()), moves}, 1);
  }
  const int64_t known = frames.size(1) - 1;
  for (int64_t k = 0; k < known; k += kContextFrames) {
    const int64_t end = std::min(k + kContextFrames, known);
    const at::Tensor coming = moves.defined() ? moves.slice(1, k + 1, end + 1) : moves;
    inner = run_core(frames.slice(1, k, end), coming, inner).state;
  }
  return model_state(inner, frames.select(1, known).clone());
}

FrameOutput PixelPredictorImpl::next(const State& state, const at::Tensor& action) {
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  auto out = core_->step(core_input(state.get("frame"), action), core_state(state));
  const at::Tensor frame = at::clamp(decode(out.y), -1, 1);
  return {frame, model_state(out.state, frame)};
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
