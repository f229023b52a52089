// One frame after the other, in constant memory unless the caller keeps them.
#include "convssm/generate/rollout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

void check(const Predictor& predictor, const at::Tensor& actions, int64_t frames) {
  ops::require("rollout", frames > 0, "frames must be positive, got {}", frames);
  if (!actions.defined()) return;
  ops::require("rollout", actions.dim() >= 2 && actions.size(0) == predictor.batch() && actions.size(1) >= frames,
               "actions must be [{},{}], [{},{},A] or [{},{},M,H,W], one for each frame, got {}", predictor.batch(),
               frames, predictor.batch(), frames, predictor.batch(), frames, ops::shape_text(actions.sizes()));
}

}  // namespace

RolloutEnd for_each_forecast(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                             const std::function<bool(const at::Tensor& frame)>& each) {
  check(predictor, actions, frames);
  const auto coming = [&](int64_t first, int64_t count) {
    return actions.defined() ? actions.slice(1, first, first + count) : actions;
  };
  RolloutEnd end;
  while (end.frames < frames) {
    const int64_t first = end.frames, left = frames - first;
    const int64_t together = std::min(predictor.frames_at_once(coming(first, left)), left);
    const models::State before = together > 1 ? predictor.state() : models::State();
    // One frame with all actions that are known: who draws frames ahead draws them with theirs.
    const at::Tensor some = predictor.next_frames(coming(first, together > 1 ? together : left), together);
    bool go_on = true;
    for (int64_t k = 0; k < together && go_on; ++k) {
      const at::Tensor frame = some.select(1, k);
      end.diverged = !at::isfinite(frame).all().item<bool>();
      if (!end.diverged) end.frames += 1;
      go_on = !end.diverged && each(frame);
    }
    if (go_on) continue;
    const int64_t given = end.frames - first;
    if (together > 1 && given < together) {  // the predictor ends where the caller ended
      predictor.start(before);
      if (given > 0) predictor.next_frames(coming(first, together), given);
    }
    break;
  }
  return end;
}

RolloutEnd for_each_forecast(const std::vector<Predictor*>& predictors, const at::Tensor& actions, int64_t frames,
                             const std::function<bool(const std::vector<at::Tensor>& all)>& each) {
  ops::require("rollout", !predictors.empty(), "expected at least one predictor, got none");
  if (predictors.size() == 1) {
    return for_each_forecast(*predictors[0], actions, frames, [&](const at::Tensor& frame) { return each({frame}); });
  }
  for (const Predictor* predictor : predictors) check(*predictor, actions, frames);
  RolloutEnd end;
  for (bool go_on = true; go_on && end.frames < frames;) {
    const at::Tensor coming = actions.defined() ? actions.slice(1, end.frames, frames) : actions;
    std::vector<at::Tensor> all;
    for (Predictor* predictor : predictors) {
      all.push_back(predictor->next_frames(coming, 1).select(1, 0));
      end.diverged = end.diverged || !at::isfinite(all.back()).all().item<bool>();
    }
    if (end.diverged) break;
    ++end.frames;
    go_on = each(all);
  }
  return end;
}

at::Tensor rollout(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                   const std::function<bool(int64_t)>& each, const at::Tensor& dt) {
  at::NoGradGuard no_grad;
  if (dt.defined()) ops::require_shape("rollout", "dt", dt, {predictor.batch(), frames});
  at::Tensor future;
  int64_t done = 0;
  const RolloutEnd end = for_each_forecast(predictor, actions, frames, [&](const at::Tensor& frame) {
    if (!future.defined()) {
      std::vector<int64_t> shape = frame.sizes().vec();
      shape.insert(shape.begin() + 1, frames);
      future = at::empty(shape, frame.options());
    }
    future.select(1, done).copy_(frame);
    if (dt.defined()) predictor.start(models::at_interval(predictor.state(), dt.select(1, done)));
    ++done;
    return !each || each(done);
  });
  if (end.diverged)
    fail(ErrorKind::numeric, "frame {} of the forecast holds NaN or infinity: it has diverged", end.frames);
  return future.slice(1, 0, end.frames);
}

}  // namespace convssm::generate
