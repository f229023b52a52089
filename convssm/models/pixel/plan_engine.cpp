// The pixel predictor run by a plan, whose doors are the tensors of its state but for the frame that waits: what the encoder
// sees of it is known when the action that follows is. For 8-bit integers a plan in float32 goes first and watches what the
// convolutions see: on the context, then on a few forecasts of its own, under the last maps that are known.
#include "convssm/models/pixel/plan_engine.h"

#include <ATen/ATen.h>

#include "convssm/models/core_plan.h"
#include "convssm/models/pixel/pixel_predictor.h"
#include "convssm/models/pixel/waiting_frame.h"
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
    calibrate(model_.takes_maps() ? last_action(context) : at::Tensor());
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
    waiting_ = waiting_with(frame.to(at::kFloat).clone(), state, model_.encoder_input());
    empty_ = false;
    forecast_waits_ = forecast_waits(state);
    if (plan_.watching() && !model_.takes_maps()) calibrate({});
  }

  State save() const override {
    at::NoGradGuard no_grad;
    State state;
    if (empty_) return state;
    for (const std::string& name : plan_->states()) state.set(name, door(name).clone());
    state.set(kFrame, waiting_.frame.clone());
    waiting_.add_to(state);
    if (forecast_waits_) state.set(kForecastWaits, at::ones({1}));
    return state;
  }

  void observe(const at::Tensor& frame, const at::Tensor& action) override {
    at::NoGradGuard no_grad;
    if (!empty_) ops::require_shape("engine", "frame", frame, waiting_.frame.sizes());
    if (!empty_ && !forecast_waits_) run_states(action);
    wait_for(waiting_.seen(frame, model_.encoder_input()));
  }

  at::Tensor next(const at::Tensor& action) override {
    at::NoGradGuard no_grad;
    if (plan_.watching() && !calibrating_) calibrate(action);  // of a state, whose maps were not known
    put_in(action);
    plan_->run();
    const at::Tensor next = door("next").clone();
    waiting_ = waiting_.forecast(next);
    forecast_waits_ = true;
    return next.clone();  // the state keeps the other
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

  void put_in(const at::Tensor& action) {
    const at::Tensor maps = model_.takes_maps() ? action : at::Tensor();
    if (maps.defined()) {
      const PixelOptions& o = model_.options();
      ops::require_shape("engine", "action", maps, {plan_->batch(), o.actions.action_maps, o.height, o.width});
    }
    door("input").copy_(model_.encoder_input().join(waiting_.frame, waiting_.mask, maps));
    set_action(*plan_, model_.action_input(), action);
  }

  // The waiting frame goes in.
  void run_states(const at::Tensor& action) {
    put_in(action);
    if (plan_.watching()) {
      plan_->run();  // with the decoder, whose convolutions are watched too
    } else {
      plan_->run_states();
    }
  }

  void wait_for(WaitingFrame frame) {
    waiting_ = std::move(frame);
    waiting_.frame = waiting_.frame.to(at::kFloat);
    empty_ = forecast_waits_ = false;
  }

  static at::Tensor last_action(const Clips& context) {
    return context.actions.defined() ? context.actions.select(1, context.frames() - 1) : context.actions;
  }

  void take_in(const Clips& context) {
    for (const std::string& name : plan_->states()) plan_->begin(name);
    for (int64_t k = 0; k < context.frames(); ++k) {
      const Clips frame = data::frames_of(context, k, k + 1);
      if (k > 0) run_states(last_action(frame));
      WaitingFrame coming = last_of(frame, model_.encoder_input());
      if (k > 0 && coming.mask.defined()) coming.measured = at::maximum(waiting_.measured, coming.mask);
      wait_for(std::move(coming));
    }
  }

  void calibrate(const at::Tensor& action) {
    const State here = save();
    calibrating_ = true;
    for (int64_t k = 0; k < kWatchedForecasts; ++k) next(action);
    calibrating_ = false;
    plan_.settle();
    load(here);
  }

  PixelPredictorImpl& model_;
  bool empty_ = true, forecast_waits_ = false, calibrating_ = false;
  WaitingFrame waiting_;
  nn::WatchedPlan plan_;
};

}  // namespace

std::unique_ptr<FrameEngine> make_plan_engine(PixelPredictorImpl& model, const EngineOptions& options) {
  at::NoGradGuard no_grad;
  return std::make_unique<PlanEngine>(model, options);
}

}  // namespace convssm::models::pixel
