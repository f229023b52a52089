// One frame after the other, in constant memory unless the caller keeps them.
#include "convssm/generate/rollout.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

void check(const Predictor& predictor, const at::Tensor& actions, int64_t frames) {
  ops::require("rollout", frames > 0, "frames must be positive, got {}", frames);
  if (!actions.defined()) return;
  ops::require("rollout", actions.dim() >= 2 && actions.size(0) == predictor.batch() && actions.size(1) >= frames,
               "actions must be [{},{}] or [{},{},A], one for each frame, got {}", predictor.batch(), frames,
               predictor.batch(), frames, ops::shape_text(actions.sizes()));
}

}  // namespace

RolloutEnd for_each_forecast(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                             const std::function<bool(const at::Tensor& frame)>& each) {
  check(predictor, actions, frames);
  RolloutEnd end;
  for (bool go_on = true; end.frames < frames && go_on;) {
    const at::Tensor frame = predictor.next_after(actions.defined() ? actions.select(1, end.frames) : actions);
    end.diverged = !at::isfinite(frame).all().item<bool>();
    if (end.diverged) break;
    end.frames += 1;
    go_on = each(frame);
  }
  return end;
}

at::Tensor rollout(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                   const std::function<bool(int64_t)>& each) {
  at::NoGradGuard no_grad;
  at::Tensor future;
  int64_t done = 0;
  const RolloutEnd end = for_each_forecast(predictor, actions, frames, [&](const at::Tensor& frame) {
    if (!future.defined()) {
      std::vector<int64_t> shape = frame.sizes().vec();
      shape.insert(shape.begin() + 1, frames);
      future = at::empty(shape, frame.options());
    }
    future.select(1, done++).copy_(frame);
    return !each || each(done);
  });
  if (end.diverged)
    fail(ErrorKind::numeric, "frame {} of the forecast holds NaN or infinity: it has diverged", end.frames);
  return future.slice(1, 0, end.frames);
}

}  // namespace convssm::generate
