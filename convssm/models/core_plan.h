// The states of a core inside of a plan.
#pragma once

#include <string>

#include "convssm/cores/state.h"
#include "convssm/models/action_input.h"
#include "convssm/nn/frame_plan.h"

namespace convssm::models {

using cores::State;

// The states of the core that the plan holds; their first values for a state without any, which is one of a single frame.
void load_core(nn::FramePlan& plan, const State& state);

// Adds them to a state, copies.
void save_core(const nn::FramePlan& plan, State& state);

// Writes the door `action`, if there is one; undefined: action 0.
void set_action(nn::FramePlan& plan, const ActionInput& input, const at::Tensor& action);

}  // namespace convssm::models
