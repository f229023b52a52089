// The states of a core inside of a plan: into and out of a State, and the action that goes in.
#pragma once

#include <string>

#include "convssm/cores/state.h"
#include "convssm/models/action_input.h"
#include "convssm/nn/frame_plan.h"

namespace convssm::models {

// The states of the core that the plan holds; zeros for a state without any, which is one of a single frame.
void load_core(nn::FramePlan& plan, const cores::State& state);

// Adds them to a state, copies.
void save_core(const nn::FramePlan& plan, cores::State& state);

// Writes the door `action`, if there is one; undefined: action 0.
void set_action(nn::FramePlan& plan, const ActionInput& input, const at::Tensor& action);

// What a plan does in a step is fixed: Error(usage) for a state whose waiting frame was taken at a time of its own.
void refuse_times(const cores::State& state, int64_t clips);

}  // namespace convssm::models
