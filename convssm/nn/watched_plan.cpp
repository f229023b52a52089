// The old plan lives until the new one has its doors' values.
#include "convssm/nn/watched_plan.h"

#include <ATen/ATen.h>

namespace convssm::nn {

WatchedPlan::WatchedPlan(int64_t batch, bool int8, Build build)
    : build_(std::move(build)), watching_(int8), plan_(built({.batch = batch, .observe = int8})) {}

std::unique_ptr<FramePlan> WatchedPlan::built(const FramePlanOptions& options) const {
  auto plan = std::make_unique<FramePlan>(options);
  build_(*plan);
  plan->finish();
  return plan;
}

void WatchedPlan::settle() {
  if (!watching_) return;
  auto plan = built({.batch = plan_->batch(), .ranges = plan_->ranges()});
  for (const auto& [name, door] : plan->doors()) door.copy_(plan_->doors().at(name));
  plan_ = std::move(plan);
  watching_ = false;
}

}  // namespace convssm::nn
