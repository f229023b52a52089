// The state of a model that goes from frame to frame. A frame waits in it until the action that follows it is known: the core
// sees frame t together with action t+1, so start() leaves the last frame of a context out and next() takes it in.
//   core.*           the states of its core
//   <name>           what goes in next, by the model's own name: the frame, its codes, its latent
//   forecast_waits   [1], there if that is a forecast, which a true frame replaces
//   dt, resets       [B], when it was taken; there if its context told it
//   step_rescale     [1], of all frames; there unless it is 1
// After a loss nothing waits. Saved states hold these names.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/cores/state.h"
#include "convssm/ssm/diagonal_states.h"

namespace convssm::models {

using cores::State;

inline constexpr const char* kForecastWaits = "forecast_waits";
inline constexpr const char* kCorePrefix = "core.";

State core_state(const State& state);

// With `waiting` under `name` if it is defined.
State make_state(const State& core, const char* name = "", const at::Tensor& waiting = {}, bool forecast = false,
                 const ssm::Timing& of_waiting = {});

// With what waits taken at an interval dt [B] after the frame before it.
State at_interval(const State& state, const at::Tensor& dt);

bool has(const State& state, const char* name);
bool forecast_waits(const State& state);

// What is there under `name`, [B,sizes...], of a type like `type`. Error(data) if there is none, or not for at least one clip.
at::Tensor waiting_value(const State& state, const char* name, at::IntArrayRef sizes, at::ScalarType type);

// When it was taken, dt and resets [B]. Error(data) unless they are for this many clips.
ssm::Timing waiting_timing(const State& state, int64_t clips);

}  // namespace convssm::models
