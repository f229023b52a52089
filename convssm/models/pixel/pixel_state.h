// The state of the pixel predictor, known to this folder alone:
//   core.*           the states of its core
//   frame            [B,C,H,W], the frame that goes in next: its action is not known before next() or observe()
//   forecast_waits   [1], there if `frame` is a forecast, which a true frame replaces
//   dt, resets       [B], when `frame` was taken; there if its context told it
//   step_rescale     [1], of all frames; there unless it is 1
// After a loss there is no frame. Saved states hold these names.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/cores/state.h"
#include "convssm/ssm/diagonal_states.h"

namespace convssm::models::pixel {

using cores::State;

inline constexpr const char* kFrame = "frame";
inline constexpr const char* kForecastWaits = "forecast_waits";
inline constexpr const char* kDt = "dt";
inline constexpr const char* kResets = "resets";
inline constexpr const char* kStepRescale = "step_rescale";
inline constexpr const char* kCorePrefix = "core.";

State core_state(const State& state);
State make_state(const State& core, const at::Tensor& frame, bool forecast_waits, const ssm::Timing& of_frame = {});
bool forecast_waits(const State& state);

// The waiting frame. Error(data) unless the state holds one of these channels, rows and columns for at least one clip.
at::Tensor waiting_frame(const State& state, int64_t channels, int64_t height, int64_t width);

// When the waiting frame was taken, dt and resets [B]. Error(data) unless they are for this many clips.
ssm::Timing waiting_timing(const State& state, int64_t clips);

}  // namespace convssm::models::pixel
