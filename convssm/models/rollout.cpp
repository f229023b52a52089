#include "convssm/models/rollout.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::models {

at::Tensor rollout(Model& model, const at::Tensor& context, const at::Tensor& actions, int64_t frames,
                   const std::function<bool(int64_t)>& each) {
  at::NoGradGuard no_grad;
  ops::require("rollout", frames > 0, "frames must be positive, got {}", frames);
  ops::require_dims("rollout", "context", context, 5, "[B,K,C,H,W]");
  const int64_t K = context.size(1);
  if (actions.defined()) ops::require_shape("rollout", "actions", actions, {context.size(0), K + frames});
  State state = model.start(context, actions.defined() ? actions.slice(1, 0, K) : actions);
  std::vector<int64_t> shape = context.sizes().vec();
  shape[1] = frames;
  at::Tensor future = at::empty(shape, context.options());
  for (int64_t k = 0; k < frames; ++k) {
    FrameOutput out = model.next(state, actions.defined() ? actions.select(1, K + k) : actions);
    future.select(1, k).copy_(out.frame);
    state = std::move(out.state);
    if (each && !each(k + 1)) return future.slice(1, 0, k + 1);
  }
  return future;
}

}  // namespace convssm::models
