// The pixel predictor run by a plan, whose doors are the tensors of its state. For 8-bit integers a plan in float32 goes
// first and watches what the convolutions see: on the context, then on a few forecasts of its own.
#include "convssm/models/pixel/plan_engine.h"

#include <ATen/ATen.h>

#include "convssm/models/core_plan.h"
#include "convssm/models/pixel/pixel_predictor.h"
#include "convssm/models/waiting_state.h"
#include "convssm/nn/watched_plan.h"
#include "convssm/ops/check.h"

namespace convssm::models::pixel {
namespace {

constexpr int64_t kWatchedForecasts = 16;
constexpr const char* kFrame = "frame";

class PlanEngine : public FrameEngine {
 public:
  PlanEngine(PixelPredictorImpl& model, const EngineOptions& o)
      : model_(model), plan_(o.batch, o.int8, [&model](nn::FramePlan& plan) { model.plan(plan); }) {}

  bool empty() const override { return empty_; }

  void start(const Clips& context, const Seeds&) override {
    at::NoGradGuard no_grad;
    model_.check("start", context);
    const data::ClipTiming& timing = context.timing;
    refuse_times({timing.dt, timing.resets, timing.step_rescale});
    take_in(context);
    if (!plan_.watching()) return;
    calibrate();
    take_in(context);  // by the plan that goes on from it, as at any later start
  }

  void load(const State& state) override {
    at::NoGradGuard no_grad;
    const PixelOptions& o = model_.options();
    const at::Tensor frame = waiting_value(state, kFrame, {o.channels, o.height, o.width}, at::kFloat);
    refuse_times(waiting_timing(state, frame.size(0)));
    const bool begins = core_state(state).empty();  // of one frame, which waits
    for (const std::string& name : plan_->states()) {
      if (begins) {
        plan_->begin(name);
      } else {
        write(door(name), name, state.get(name));
      }
    }
    replace(frame);
    forecast_waits_ = forecast_waits(state);
    if (plan_.watching()) calibrate();
  }

  State save() const override {
    at::NoGradGuard no_grad;
    State state;
    for (const std::string& name : plan_->states()) state.set(name, door(name).clone());
    state.set(kFrame, door("frame").clone());
    if (forecast_waits_) state.set(kForecastWaits, at::ones({1}));
    return state;
  }

  void observe(const at::Tensor& frame, const at::Tensor& action) override {
    at::NoGradGuard no_grad;
    if (!empty_ && !forecast_waits_) run_states(action);
    replace(frame);
  }

  at::Tensor next(const at::Tensor& action) override {
    at::NoGradGuard no_grad;
    set_action(*plan_, model_.action_input(), action);
    plan_->run();
    door("frame").copy_(door("next"));
    forecast_waits_ = true;
    return door("next").clone();
  }

 private:
  at::Tensor door(const std::string& name) const { return plan_->doors().at(name); }

  static at::Tensor write(at::Tensor to, const std::string& name, const at::Tensor& values) {
    ops::require("engine", values.defined(), "the state has no {}", name);
    ops::require_shape("engine", name.c_str(), values, to.sizes());
    return to.copy_(values);
  }

  // What a plan does in a step is fixed.
  static void refuse_times(const ssm::Timing& timing) {
    ops::require("engine", !timing.varies() && timing.step_rescale == 1,
                 "a compiled model takes no dt, resets and step_rescale; take the eager engine");
  }

  // The waiting frame goes in.
  void run_states(const at::Tensor& action) {
    set_action(*plan_, model_.action_input(), action);
    if (plan_.watching()) {
      plan_->run();  // with the decoder, whose convolutions are watched too
    } else {
      plan_->run_states();
    }
  }

  void replace(const at::Tensor& frame) {
    write(door("frame"), "frame", frame);
    empty_ = forecast_waits_ = false;
  }

  void take_in(const Clips& context) {
    for (const std::string& name : plan_->states()) plan_->begin(name);
    replace(context.video.select(1, 0));
    for (int64_t k = 1; k < context.frames(); ++k) {
      observe(context.video.select(1, k), context.actions.defined() ? context.actions.select(1, k) : context.actions);
    }
  }

  void calibrate() {
    const State here = save();
    for (int64_t k = 0; k < kWatchedForecasts; ++k) next({});
    plan_.settle();
    load(here);
  }

  PixelPredictorImpl& model_;
  bool empty_ = true, forecast_waits_ = false;
  nn::WatchedPlan plan_;
};

}  // namespace

std::unique_ptr<FrameEngine> make_plan_engine(PixelPredictorImpl& model, const EngineOptions& options) {
  at::NoGradGuard no_grad;
  return std::make_unique<PlanEngine>(model, options);
}

}  // namespace convssm::models::pixel
