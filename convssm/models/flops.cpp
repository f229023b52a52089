// Counts what next() multiplies: it runs the model once while a meter listens, so no formula can go stale.
#include "convssm/models/flops.h"

#include <ATen/ATen.h>

#include "convssm/models/forecaster.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::models {

uint64_t flops_per_frame(Model& model, const data::FrameFormat& frames) {
  at::NoGradGuard no_grad;
  Forecaster& forecaster = forecaster_of(model);
  const State state =
      forecaster.start({at::zeros({1, 2, frames.depth(), frames.height, frames.width}, device_of(model))}, {});
  const ops::FlopMeter meter;
  forecaster.next(state, {});
  return meter.count();
}

}  // namespace convssm::models
