// All frames are forecast at once, teacher forced, so a pass costs one forward and not a rollout.
#include "convssm/train/self_feed.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace convssm::train {

at::Tensor self_fed_inputs(models::Forecaster& forecaster, const data::Clips& clips, double probability, int64_t passes,
                           Stream stream) {
  at::NoGradGuard no_grad;
  const at::Tensor &video = clips.video, &actions = clips.actions;
  const int64_t B = video.size(0), T = video.size(1);
  at::Tensor own = at::zeros({B, T, 1, 1, 1}, at::kBool);
  auto chosen = own.accessor<bool, 5>();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 1; t < T; ++t) chosen[b][t][0][0][0] = stream.uniform() < probability;
  }
  own = own.to(video.device());
  const at::Tensor coming = actions.defined() ? actions.slice(1, 1) : actions;
  at::Tensor inputs = video;
  for (int64_t pass = 0; pass < passes; ++pass) {
    data::Clips seen = data::frames_of(clips, 0, T - 1);
    seen.video = inputs.slice(1, 0, T - 1);
    const at::Tensor next = forecaster.forecasts(seen, coming);
    inputs = at::where(own, at::cat({video.slice(1, 0, 1), next}, 1), video);
  }
  return inputs;
}

double self_feed_at(double last, int64_t step, int64_t steps) {
  return last * std::min(1.0, 2 * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(steps, 1)));
}

}  // namespace convssm::train
