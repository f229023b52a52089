#include "convssm/generate/generate.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::generate {

GenerateResult generate(models::Model& model, models::State state, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress) {
  at::NoGradGuard no_grad;
  ops::require("generate", frames > 0, "frames must be positive, got {}", frames);
  GenerateResult result{std::move(state), 0, false};
  bool go_on = true;
  while (result.frames < frames && go_on) {
    const at::Tensor action = actions.defined() ? actions.select(1, result.frames) : actions;
    models::FrameOutput out = model.next(result.state, action);
    if (!at::isfinite(out.frame).all().item<bool>()) {
      result.diverged = true;
      break;
    }
    const auto clips = static_cast<size_t>(out.frame.size(0));
    ops::require("generate", sinks.empty() || sinks.size() == clips, "expected a sink for each of {} clips, got {}",
                 clips, sinks.size());
    for (size_t i = 0; i < sinks.size(); ++i) sinks[i]->write(out.frame[static_cast<int64_t>(i)]);
    result.state = std::move(out.state);
    result.frames += 1;
    if (progress) go_on = progress(result.frames);
  }
  return result;
}

}  // namespace convssm::generate
