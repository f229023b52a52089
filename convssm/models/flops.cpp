// Counts what next() multiplies: it runs the model once while a meter listens, so no formula can go stale.
#include "convssm/models/flops.h"

#include <ATen/ATen.h>

#include "convssm/models/forecaster.h"
#include "convssm/models/tokenizer.h"
#include "convssm/ops/device.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::models {

namespace {

// There and back.
uint64_t flops_of_tokenizer(Model& model, const data::FrameFormat& frames) {
  const at::Tensor frame = at::zeros({1, 1, frames.depth(), frames.height, frames.width}, device_of(model));
  const ops::FlopMeter meter;
  model.as_tokenizer()->decode(model.as_tokenizer()->encode(frame));
  return meter.count();
}

}  // namespace

uint64_t flops_per_frame(Model& model, const data::FrameFormat& frames) {
  at::NoGradGuard no_grad;
  const ops::PlainKernels plain;  // in operations that the meter sees
  if (model.as_forecaster() == nullptr && model.as_tokenizer() != nullptr) return flops_of_tokenizer(model, frames);
  Forecaster& forecaster = forecaster_of(model);
  const State state =
      forecaster.start({at::zeros({1, 2, frames.depth(), frames.height, frames.width}, device_of(model))}, {});
  const ops::FlopMeter meter;
  forecaster.next(state, {});
  return meter.count();
}

}  // namespace convssm::models
