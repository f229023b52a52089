// A step is a sequence of one frame, so that there is one implementation to be right; cores that can do better make a
// plan.
#include "convssm/cores/core.h"

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::cores {

nn::Buffer Core::plan(nn::FramePlan&, const nn::Buffer&) {
  fail(ErrorKind::usage, "[plan] this core has none; run it by step()");
}

CoreOutput Core::step(const at::Tensor& x, const State& state, const Timing& timing) {
  ops::require("step", x.defined(), "x must be one frame [B,C,H,W] or [B,C], got an undefined tensor");
  Timing one = timing;
  if (one.dt.defined()) one.dt = one.dt.unsqueeze(0);
  if (one.resets.defined()) one.resets = one.resets.unsqueeze(0);
  CoreOutput out = forward(x.unsqueeze(0), state, one);
  return {out.y.squeeze(0), std::move(out.state)};
}

}  // namespace convssm::cores
