// The states of a core inside of a plan, and engines around such a plan.
#pragma once

#include <deque>
#include <string>

#include "convssm/models/action_input.h"
#include "convssm/models/forecaster.h"
#include "convssm/nn/watched_plan.h"

namespace convssm::models {

// The states of the core that the plan holds; their first values for a state without any, which is one of a single frame.
void load_core(nn::FramePlan& plan, const State& state);

// Adds them to a state, copies.
void save_core(const nn::FramePlan& plan, State& state);

// Writes the door `action`, if there is one; undefined: action 0.
void set_action(nn::FramePlan& plan, const ActionInput& input, const at::Tensor& action);

// An engine whose next() is compiled and whose core is in a plan. Contexts and true frames go through the forecaster itself.
// For 8-bit integers the first state that is loaded is rolled forward a few frames in float32 and watched, then loaded again.
class CorePlanEngine : public FrameEngine {
 public:
  CorePlanEngine(Forecaster& forecaster, const EngineOptions& options) : forecaster_(forecaster), options_(options) {}

  bool empty() const override { return state_.empty(); }
  void start(const Clips& context, const Seeds& seeds) override { load(forecaster_.start(context, seeds)); }
  void observe(const at::Tensor& frame, const at::Tensor& action) override;

  // Error(usage) for a state of other clips, or whose waiting frame was taken at a time of its own: a step is fixed.
  void load(const State& state) override;
  State save() const override;

 protected:
  // Plans of the engine, in its constructor; the first is the one with the core.
  nn::WatchedPlan& add_plan(nn::WatchedPlan::Build build);

  // Runs the plan of the core with this action.
  void run_core(const ActionInput& input, const at::Tensor& action);

  State state_;  // what waits; its states of the core are those of the last load(), the plan has the present ones

 private:
  nn::FramePlan& core() { return *plans_.front(); }
  const nn::FramePlan& core() const { return *plans_.front(); }
  void take(const State& state);
  void calibrate();

  Forecaster& forecaster_;
  EngineOptions options_;
  std::deque<nn::WatchedPlan> plans_;  // stay where they are
  bool ran_ = false;                   // since the last load()
};

}  // namespace convssm::models
