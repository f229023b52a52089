// Doors are tensors of the plan: they are written in place.
#include "convssm/models/core_plan.h"

#include <ATen/ATen.h>

#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
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

}  // namespace convssm::models
