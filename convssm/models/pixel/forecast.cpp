// The pixel model frame by frame: what goes in next waits in the state.
#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/models/pixel/pixel_predictor.h"
#include "convssm/models/pixel/waiting_frame.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

// Frames that start() and forecasts() run through the core at once.
constexpr int64_t kContextFrames = 16;

constexpr const char* kFrame = "frame";

State pixel_state(const State& core, const pixel::WaitingFrame& waiting, bool forecast, const ssm::Timing& timing) {
  State state = make_state(core, kFrame, waiting.frame, forecast, timing);
  waiting.add_to(state);
  return state;
}

}  // namespace

at::Tensor PixelPredictorImpl::forecasts(const Clips& clips, const at::Tensor& coming, const State& start) {
  at::NoGradGuard no_grad;
  check("forecasts", clips);
  const int64_t B = clips.batch(), T = clips.frames();
  at::Tensor all = at::empty(clips.video.sizes(), clips.video.options());
  State inner = core_state(start);
  for (int64_t k = 0; k < T; k += kContextFrames) {
    const int64_t end = std::min(k + kContextFrames, T);
    auto out = run_core(clips.video.slice(1, k, end), slice_actions(clips.valid, k, end), slice_actions(coming, k, end),
                        inner, slice_timing(clips.timing, k, end));
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
    inner = run_core(context.video.slice(1, k, end), slice_actions(context.valid, k, end),
                     slice_actions(context.actions, k + 1, end + 1), inner, slice_timing(context.timing, k, end))
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
  return pixel_state(take_in(context), pixel::last_of(context, input_), false,
                     {last(timing.dt), last(timing.resets), timing.step_rescale});
}

// The waiting frame goes in.
cores::CoreOutput PixelPredictorImpl::step(const pixel::WaitingFrame& waiting, const at::Tensor& action,
                                           const State& state) {
  const int64_t B = waiting.frame.size(0);
  const ssm::Timing timing = waiting_timing(state, B);
  if (takes_maps() && action.defined()) {
    ops::require_shape("next", "action", action, {B, options_.actions.action_maps, options_.height, options_.width});
  }
  const at::Tensor features = features_of(waiting.frame, waiting.mask, action);
  return dynamics_.step(features, takes_maps() ? at::Tensor() : action, core_state(state), timing);
}

State PixelPredictorImpl::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const pixel::WaitingFrame waiting = waiting_in(state);
  ops::require_shape("observe", "frame", frame, waiting.frame.sizes());
  const State inner = forecast_waits(state) ? core_state(state) : step(waiting, action, state).state;
  const double rescale = waiting_timing(state, frame.size(0)).step_rescale;
  return pixel_state(inner, waiting.seen(frame, input_), false, {{}, {}, rescale});
}

Forecast PixelPredictorImpl::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  const pixel::WaitingFrame waiting = waiting_in(state);
  auto out = step(waiting, action, state);
  const at::Tensor frame = at::clamp(decode(out.y), -1, 1);
  const double rescale = waiting_timing(state, frame.size(0)).step_rescale;
  return {frame, pixel_state(out.state, waiting.forecast(frame), true, {{}, {}, rescale})};
}

pixel::WaitingFrame PixelPredictorImpl::waiting_in(const State& state) const {
  const at::Tensor frame =
      waiting_value(state, kFrame, {options_.channels, options_.height, options_.width}, at::kFloat);
  return pixel::waiting_with(frame, state, input_);
}

int64_t PixelPredictorImpl::clips_in(const State& state) const { return waiting_in(state).frame.size(0); }

}  // namespace convssm::models
