#include "convssm/models/flops.h"

#include <ATen/ATen.h>

#include "convssm/ops/flop_meter.h"

namespace convssm::models {

uint64_t flops_per_frame(Model& model, const FrameSize& frames) {
  at::NoGradGuard no_grad;
  const State state = model.start(at::zeros({1, 2, frames.channels, frames.height, frames.width}), {});
  const ops::FlopMeter meter;
  model.next(state, {});
  return meter.count();
}

}  // namespace convssm::models
