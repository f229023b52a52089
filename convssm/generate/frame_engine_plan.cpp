// A model run by a plan. For 8-bit integers a plan in float32 goes first and watches what the convolutions see: on the
// context, then on a few forecasts of its own; the plan in integers takes over from its states.
#include <ATen/ATen.h>

#include "convssm/generate/frame_engine.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

constexpr int64_t kWatchedForecasts = 16;

std::unique_ptr<nn::FramePlan> make_plan(models::Model& model, const nn::FramePlanOptions& options) {
  auto plan = std::make_unique<nn::FramePlan>(options);
  model.plan(*plan);
  plan->finish();
  return plan;
}

class PlanEngine : public FrameEngine {
 public:
  PlanEngine(models::Model& model, int64_t batch, bool int8)
      : model_(model), watching_(int8), plan_(make_plan(model, {.batch = batch, .observe = int8})) {}

  bool empty() const override { return empty_; }

  void begin(const at::Tensor& context, const at::Tensor& actions) override {
    take_in(context, actions);
    if (!watching_) return;
    calibrate();
    take_in(context, actions);  // by the plan that goes on from it, as at any later start
  }

  void load(const models::State& state) override {
    for (const std::string& name : plan_->states()) write(door(name), name, state.get(name));
    replace(state.get("frame"));
    if (watching_) calibrate();
  }

  models::State save() const override {
    models::State state;
    for (const std::string& name : plan_->states()) state.set(name, door(name).clone());
    state.set("frame", door("frame").clone());
    return state;
  }

  void replace(const at::Tensor& frame) override {
    write(door("frame"), "frame", frame);
    empty_ = false;
  }

  void feed(const at::Tensor& frame, const at::Tensor& action) override {
    set_action(action);
    if (watching_) {
      plan_->run();  // with the decoder, whose convolutions are watched too
    } else {
      plan_->run_states();
    }
    replace(frame);
  }

  at::Tensor forecast(const at::Tensor& action) override {
    set_action(action);
    plan_->run();
    door("frame").copy_(door("next"));
    return door("next").clone();
  }

 private:
  at::Tensor door(const std::string& name) const { return plan_->doors().at(name); }

  void write(at::Tensor to, const std::string& name, const at::Tensor& values) {
    ops::require("Predictor", values.defined(), "the state has no {}", name);
    ops::require_shape("Predictor", name.c_str(), values, to.sizes());
    to.copy_(values);
  }

  void set_action(const at::Tensor& action) {
    if (!plan_->doors().contains("action")) return;
    if (!action.defined()) {
      door("action").zero_();
    } else {
      write(door("action"), "action", action);
    }
  }

  void take_in(const at::Tensor& context, const at::Tensor& actions) {
    for (const std::string& name : plan_->states()) door(name).zero_();
    replace(context.select(1, 0));
    for (int64_t k = 1; k < context.size(1); ++k) {
      feed(context.select(1, k), actions.defined() ? actions.select(1, k) : actions);
    }
  }

  void calibrate() {
    const models::State here = save();
    for (int64_t k = 0; k < kWatchedForecasts; ++k) forecast({});
    plan_ = make_plan(model_, {.batch = plan_->batch(), .ranges = plan_->ranges()});
    watching_ = false;
    load(here);
  }

  models::Model& model_;
  bool watching_, empty_ = true;
  std::unique_ptr<nn::FramePlan> plan_;
};

}  // namespace

std::unique_ptr<FrameEngine> make_plan_engine(models::Model& model, int64_t batch, bool int8) {
  return std::make_unique<PlanEngine>(model, batch, int8);
}

}  // namespace convssm::generate
