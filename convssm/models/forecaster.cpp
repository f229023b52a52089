// What every forecaster can do by start(), next() and observe() alone: forecasts of a known clip, and an engine.
#include "convssm/models/forecaster.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

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

 private:
  Forecaster& forecaster_;
  State state_;
};

}  // namespace

at::Tensor Forecaster::forecasts(const Clips& clips, const at::Tensor& coming) {
  at::NoGradGuard no_grad;
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

std::unique_ptr<FrameEngine> Forecaster::compile(const EngineOptions&) { return nullptr; }

std::unique_ptr<FrameEngine> eager_engine(Forecaster& forecaster) { return std::make_unique<EagerEngine>(forecaster); }

}  // namespace convssm::models
