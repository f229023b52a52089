// Frames of a rollout into sinks.
#include "convssm/generate/generate.h"

#include <ATen/ATen.h>

#include "convssm/base/random.h"
#include "convssm/generate/rollout.h"
#include "convssm/ops/check.h"

namespace convssm::generate {

GenerateResult generate(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress) {
  const auto clips = static_cast<size_t>(predictor.batch());
  ops::require("generate", sinks.empty() || sinks.size() == clips, "expected a sink for each of {} clips, got {}",
               clips, sinks.size());
  int64_t done = 0;
  const RolloutEnd end = for_each_forecast(predictor, actions, frames, [&](const at::Tensor& frame) {
    for (size_t i = 0; i < sinks.size(); ++i) sinks[i]->write(frame[static_cast<int64_t>(i)]);
    return !progress || progress(++done);
  });
  return {end.diverged ? models::State() : predictor.state(), end.frames, end.diverged};
}

uint64_t future_seed(uint64_t seed, int64_t clip, int64_t sample) {
  return Stream(seed, "future of clip", static_cast<uint64_t>(clip))
      .split("sample", static_cast<uint64_t>(sample))
      .next();
}

}  // namespace convssm::generate
