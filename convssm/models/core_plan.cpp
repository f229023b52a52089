// Doors are tensors of the plan: they are written in place.
#include "convssm/models/core_plan.h"

#include <ATen/ATen.h>

#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int kWatchedFrames = 8;

}  // namespace

void load_core(nn::FramePlan& plan, const State& state) {
  const bool begins = core_state(state).empty();
  for (const std::string& name : plan.states()) {
    if (!name.starts_with(kCorePrefix)) continue;
    if (begins) {
      plan.begin(name);
      continue;
    }
    at::Tensor door = plan.doors().at(name);
    const at::Tensor values = state.get(name);
    ops::require_shape("engine", name.c_str(), values, door.sizes());
    door.copy_(values);
  }
}

void save_core(const nn::FramePlan& plan, State& state) {
  for (const std::string& name : plan.states()) {
    if (name.starts_with(kCorePrefix)) state.set(name, plan.doors().at(name).clone());
  }
}

void set_action(nn::FramePlan& plan, const ActionInput& input, const at::Tensor& action) {
  const auto found = plan.doors().find("action");
  if (found == plan.doors().end()) return;
  at::Tensor door = found->second;
  if (!action.defined()) {
    door.zero_();
    return;
  }
  ops::require_shape("engine", "action", action, door.sizes());
  input.check_below("engine", door.copy_(action));
}

void CorePlanEngine::observe(const at::Tensor& frame, const at::Tensor& action) {
  load(empty() ? forecaster_.start({frame.unsqueeze(1)}, {}) : forecaster_.observe(save(), frame, action));
}

void CorePlanEngine::load(const State& state) {
  const at::NoGradGuard no_grad;
  take(state);
  if (plans_.front().watching()) calibrate();
}

void CorePlanEngine::take(const State& state) {
  const int64_t clips = forecaster_.clips_in(state);
  ops::require("engine", clips == core().batch(), "the engine runs {} clips side by side, the state holds {}",
               core().batch(), clips);
  const ssm::Timing timing = waiting_timing(state, clips);
  ops::require("engine", !timing.varies() && timing.step_rescale == 1,
               "a compiled model takes no dt, resets and step_rescale; take the eager engine");
  load_core(core(), state);
  state_ = state;
  ran_ = false;
}

State CorePlanEngine::save() const {
  const at::NoGradGuard no_grad;
  State state = state_;
  if (ran_) save_core(core(), state);
  return state;
}

nn::WatchedPlan& CorePlanEngine::add_plan(nn::WatchedPlan::Build build) {
  return plans_.emplace_back(options_.batch, options_.int8, std::move(build));
}

void CorePlanEngine::run_core(const ActionInput& input, const at::Tensor& action) {
  set_action(core(), input, action);
  core().run();
  ran_ = true;
}

void CorePlanEngine::calibrate() {
  const State here = state_;
  for (int k = 0; k < kWatchedFrames; ++k) next({});
  for (nn::WatchedPlan& plan : plans_) plan.settle();
  take(here);
}

}  // namespace convssm::models
