#include "convssm/models/codes/code_model_engine.h"

#include <ATen/ATen.h>

#include "convssm/models/core_plan.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int kWatchedFrames = 8;

}  // namespace

void CodeModelEngine::observe(const at::Tensor& frame, const at::Tensor& action) {
  load(empty() ? model_.start({frame.unsqueeze(1)}, {}) : model_.observe(save(), frame, action));
}

void CodeModelEngine::load(const State& state) {
  const at::NoGradGuard no_grad;
  take(state);
  if (plans_.front().watching()) calibrate();
}

void CodeModelEngine::take(const State& state) {
  const int64_t clips = model_.clips_in(state);
  ops::require("engine", clips == core().batch(), "the engine runs {} clips side by side, the state holds {}",
               core().batch(), clips);
  const ssm::Timing timing = waiting_timing(state, clips);
  ops::require("engine", !timing.varies() && timing.step_rescale == 1,
               "a compiled model takes no dt, resets and step_rescale; take the eager engine");
  load_core(core(), state);
  state_ = state;
  ran_ = false;
}

State CodeModelEngine::save() const {
  const at::NoGradGuard no_grad;
  State state = state_;
  if (ran_) save_core(core(), state);
  return state;
}

nn::WatchedPlan& CodeModelEngine::add_plan(nn::WatchedPlan::Build build) {
  return plans_.emplace_back(options_.batch, options_.int8, std::move(build));
}

void CodeModelEngine::run_core(const at::Tensor& action) {
  set_action(core(), model_.dynamics_.actions(), action);
  core().run();
  ran_ = true;
}

void CodeModelEngine::watch(const State& state, const at::Tensor& action) {
  take(state);
  for (int k = 0; k < kWatchedFrames; ++k) next(action);
}

// Frames that are seen and, after the context of causal masking, frames that are hidden because their actions are given.
void CodeModelEngine::calibrate() {
  const State here = state_;
  watch(here, {});
  if (model_.masking_.causal()) watch(model_.after_context(here), at::zeros({core().batch()}, at::kLong));
  for (nn::WatchedPlan& plan : plans_) plan.settle();
  take(here);
}

}  // namespace convssm::models
