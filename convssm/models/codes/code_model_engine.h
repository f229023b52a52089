// An engine of a model of codes, whose next() is compiled. Contexts and true frames go through the model itself. For 8-bit
// integers the first state that is loaded is rolled forward a few frames in float32 and watched, then loaded again.
#pragma once

#include <deque>

#include "convssm/models/codes/code_model.h"
#include "convssm/nn/watched_plan.h"

namespace convssm::models {

class CodeModelEngine : public FrameEngine {
 public:
  CodeModelEngine(CodeModel& model, const EngineOptions& options) : model_(model), options_(options) {}

  bool empty() const override { return state_.empty(); }
  void start(const Clips& context, const Seeds& seeds) override { load(model_.start(context, seeds)); }
  void observe(const at::Tensor& frame, const at::Tensor& action) override;

  // Error(usage) for a state of other clips, or whose waiting frame was taken at a time of its own: a step is fixed.
  void load(const State& state) override;
  State save() const override;

 protected:
  // Plans of the engine, in its constructor; the first is the one with the core.
  nn::WatchedPlan& add_plan(nn::WatchedPlan::Build build);

  // Runs the plan of the core with this action.
  void run_core(const at::Tensor& action);

  State state_;  // what waits; its states of the core are those of the last load(), the plan has the present ones

 private:
  nn::FramePlan& core() { return *plans_.front(); }
  const nn::FramePlan& core() const { return *plans_.front(); }
  void take(const State& state);
  void watch(const State& state, const at::Tensor& action);
  void calibrate();

  CodeModel& model_;
  EngineOptions options_;
  std::deque<nn::WatchedPlan> plans_;  // stay where they are
  bool ran_ = false;                   // since the last load()
};

}  // namespace convssm::models
