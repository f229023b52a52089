// What every forecaster can do by start(), next() and observe() alone: forecasts of a known clip, and an engine.
#include "convssm/models/forecaster.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/models/clip_random.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

// [B,...] each -> [B,frames,...]; a single frame, as rollouts ask for, is not copied.
at::Tensor joined(const std::vector<at::Tensor>& frames) {
  return frames.size() == 1 ? frames[0].unsqueeze(1) : at::stack(frames, 1);
}

class EagerEngine : public FrameEngine {
 public:
  explicit EagerEngine(Forecaster& forecaster) : forecaster_(forecaster) {}
  bool empty() const override { return state_.empty(); }
  void start(const Clips& context, const Seeds& seeds) override { state_ = forecaster_.start(context, seeds); }
  void load(const State& state) override { state_ = state; }
  State save() const override { return state_; }

  void observe(const at::Tensor& frame, const at::Tensor& action) override {
    state_ = forecaster_.observe(state_, frame, action);
  }

  at::Tensor next(const at::Tensor& action) override {
    Forecast out = forecaster_.next(state_, action);
    state_ = std::move(out.state);
    return out.frame.clone();  // the state may keep the other
  }

  int64_t frames_at_once(const at::Tensor& actions) const override {
    return forecaster_.frames_at_once(state_, actions);
  }

  at::Tensor next_frames(const at::Tensor& actions, int64_t frames) override {
    Forecast out = forecaster_.next_frames(state_, actions, frames);
    state_ = std::move(out.state);
    return out.frame;
  }

 private:
  Forecaster& forecaster_;
  State state_;
};

}  // namespace

at::Tensor Forecaster::forecasts(const Clips& clips, const at::Tensor& coming, const State& begin) {
  at::NoGradGuard no_grad;
  ops::require("forecasts", begin.empty(),
               "this model forecasts clips from their first frame on, not from where others ended");
  data::check_clips("forecasts", clips);
  const data::ClipTiming& timing = clips.timing;
  ops::require("forecasts", !timing.dt.defined() && !timing.resets.defined() && timing.step_rescale == 1,
               "this model knows no time between frames: leave dt, resets and step_rescale out");
  at::Tensor all = at::empty_like(clips.video, at::MemoryFormat::Contiguous);
  const auto action = [&](int64_t t) { return coming.defined() ? coming.select(1, t) : coming; };
  State state = start({clips.video.slice(1, 0, 1)}, {});
  for (int64_t t = 0; t < clips.frames(); ++t) {
    if (t > 0) state = observe(state, clips.video.select(1, t), action(t - 1));
    Forecast out = next(state, action(t));
    all.select(1, t).copy_(out.frame);
    state = std::move(out.state);
  }
  return all;
}

Forecast Forecaster::next_frames(const State& state, const at::Tensor& actions, int64_t frames) {
  std::vector<at::Tensor> all;
  State now = state;
  for (int64_t k = 0; k < frames; ++k) {
    Forecast out = next(now, actions.defined() ? actions.select(1, k) : actions);
    all.push_back(out.frame);
    now = std::move(out.state);
  }
  return {joined(all), std::move(now)};
}

State Forecaster::reseeded(const State& state, const Seeds& seeds) const {
  if (!draws()) return state;
  const int64_t clips = clips_in(state);
  State other = state;
  other.set(kRandomPosition, reseeded_position(state.get(kRandomPosition), seeds, clips));
  return other;
}

std::optional<double> Forecaster::temperature() {
  const double* setting = temperature_setting();
  return setting != nullptr ? std::optional(*setting) : std::nullopt;
}

void Forecaster::set_temperature(double value) {
  double* setting = temperature_setting();
  ops::require("set_temperature", setting != nullptr, "this model has no temperature: it draws no codes");
  ops::require("set_temperature", std::isfinite(value) && value > 0, "temperature must be above 0, got {}", value);
  *setting = value;
}

at::Tensor FrameEngine::next_frames(const at::Tensor& actions, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < frames; ++k) all.push_back(next(actions.defined() ? actions.select(1, k) : actions));
  return joined(all);
}

std::unique_ptr<FrameEngine> Forecaster::compile(const EngineOptions&) { return nullptr; }

std::unique_ptr<FrameEngine> eager_engine(Forecaster& forecaster) { return std::make_unique<EagerEngine>(forecaster); }

}  // namespace convssm::models
