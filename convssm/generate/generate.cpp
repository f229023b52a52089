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
  std::vector<FrameSink*> plain;
  for (const auto& sink : sinks) plain.push_back(sink.get());
  return generate(std::vector<Predictor*>{&predictor}, actions, frames, plain, progress);
}

GenerateResult generate(const std::vector<Predictor*>& predictors, const at::Tensor& actions, int64_t frames,
                        const std::vector<FrameSink*>& sinks, const std::function<bool(int64_t)>& progress) {
  size_t clips = 0;
  for (const Predictor* predictor : predictors) clips += static_cast<size_t>(predictor->batch());
  ops::require("generate", sinks.empty() || sinks.size() == clips, "expected a sink for each of {} clips, got {}",
               clips, sinks.size());
  int64_t done = 0;
  const RolloutEnd end = for_each_forecast(predictors, actions, frames, [&](const std::vector<at::Tensor>& all) {
    auto sink = sinks.begin();
    for (const at::Tensor& of_one : all) {
      for (int64_t i = 0; i < of_one.size(0) && sink != sinks.end(); ++i) (*sink++)->write(of_one[i]);
    }
    return !progress || progress(++done);
  });
  const bool keeps = !end.diverged && predictors.size() == 1;
  return {keeps ? predictors[0]->state() : models::State(), end.frames, end.diverged};
}

uint64_t future_seed(uint64_t seed, int64_t clip, int64_t sample) {
  return Stream(seed, "future of clip", static_cast<uint64_t>(clip))
      .split("sample", static_cast<uint64_t>(sample))
      .next();
}

}  // namespace convssm::generate
