// Masks are numbers of the type of the frame: so they go in.
#include "convssm/models/pixel/waiting_frame.h"

#include <ATen/ATen.h>

#include "convssm/data/pixels.h"
#include "convssm/models/pixel/encoder_input.h"
#include "convssm/models/waiting_state.h"

namespace convssm::models::pixel {
namespace {

constexpr const char *kMask = "mask", *kMeasured = "measured";

}  // namespace

void WaitingFrame::add_to(cores::State& state) const {
  if (!mask.defined()) return;
  state.set(kMask, mask);
  state.set(kMeasured, measured);
}

WaitingFrame WaitingFrame::forecast(const at::Tensor& next) const { return {next, measured, measured}; }

WaitingFrame WaitingFrame::seen(const at::Tensor& truth, const EncoderInput& input) const {
  const at::Tensor missing = at::isnan(truth);
  WaitingFrame now{at::where(missing, at::full({}, data::kFiller, truth.options()), truth), {}, {}};
  if (!input.masks()) return now;
  now.mask = input.seen_of(missing).logical_not().to(truth.options());
  now.measured = measured.defined() ? at::maximum(measured, now.mask) : now.mask;
  return now;
}

WaitingFrame last_of(const data::Clips& context, const EncoderInput& input) {
  const int64_t last = context.frames() - 1;
  WaitingFrame now{context.video.select(1, last).clone(), {}, {}};
  if (!input.masks()) return now;
  const at::Tensor &valid = context.valid, all = at::ones_like(input.seen_of(now.frame));
  now.mask = valid.defined() ? input.seen_of(valid.select(1, last)).to(all.options()) : all;
  now.measured = valid.defined() ? input.seen_of(valid.any(1)).to(all.options()) : all;
  return now;
}

WaitingFrame waiting_with(const at::Tensor& frame, const cores::State& state, const EncoderInput& input) {
  WaitingFrame now{frame, {}, {}};
  if (!input.masks()) return now;
  const auto found = [&](const char* name) {
    const at::Tensor value =
        waiting_value(state, name, {input.seen(), frame.size(2), frame.size(3)}, frame.scalar_type());
    if (value.size(0) == frame.size(0)) return value;
    fail(ErrorKind::data, "the {} of the state must be of {} clips, as its frame is, got {}", name, frame.size(0),
         value.size(0));
  };
  now.mask = found(kMask), now.measured = found(kMeasured);
  return now;
}

}  // namespace convssm::models::pixel
