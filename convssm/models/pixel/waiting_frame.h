// The frame that waits in a state of the pixel model (models/waiting_state.h). With a mask there stand beside it
//   mask      [B,seen,H,W], 1 where a pixel of it was measured
//   measured  [B,seen,H,W], 1 where a pixel was measured in any frame so far: the mask of forecasts
// for without them a future would depend on where it was stopped.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/cores/state.h"
#include "convssm/data/clips.h"

namespace convssm::models::pixel {

class EncoderInput;

struct WaitingFrame {
  at::Tensor frame;                // [B,C,H,W]
  at::Tensor mask, measured = {};  // undefined without a mask

  void add_to(cores::State& state) const;  // but the frame
  WaitingFrame forecast(const at::Tensor& next) const;
  WaitingFrame seen(const at::Tensor& truth, const EncoderInput& input) const;  // NaN: not measured
};

// The last one of a context.
WaitingFrame last_of(const data::Clips& context, const EncoderInput& input);

// Of a state that may come from a file, with a frame that was found in it. Error(data) if its masks do not fit.
WaitingFrame waiting_with(const at::Tensor& frame, const cores::State& state, const EncoderInput& input);

}  // namespace convssm::models::pixel
