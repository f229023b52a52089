#include "convssm/generate/generate.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::generate {

GenerateResult generate(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress) {
  ops::require("generate", frames > 0, "frames must be positive, got {}", frames);
  const auto clips = static_cast<size_t>(predictor.batch());
  ops::require("generate", sinks.empty() || sinks.size() == clips, "expected a sink for each of {} clips, got {}",
               clips, sinks.size());
  GenerateResult result;
  bool go_on = true;
  while (result.frames < frames && go_on) {
    const at::Tensor action = actions.defined() ? actions.select(1, result.frames) : actions;
    const at::Tensor frame = predictor.next_after(action);
    if (!at::isfinite(frame).all().item<bool>()) {
      result.diverged = true;
      break;
    }
    for (size_t i = 0; i < sinks.size(); ++i) sinks[i]->write(frame[static_cast<int64_t>(i)]);
    result.frames += 1;
    if (progress) go_on = progress(result.frames);
  }
  if (!result.diverged) result.state = predictor.state();
  return result;
}

GenerateResult generate(models::Model& model, const models::State& state, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress) {
  ops::require("generate", !state.empty(), "the state is empty; start() makes one from a context");
  Predictor predictor(model, {.batch = state.get("frame").size(0)});
  predictor.start(state);
  return generate(predictor, actions, frames, sinks, progress);
}

}  // namespace convssm::generate
