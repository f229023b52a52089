// All frames are forecast at once, teacher forced, so a pass costs one forward and not a rollout.
#include "convssm/train/self_feed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

namespace convssm::train {

using data::Clips;

namespace {

// Which pixels of inputs were measured; `own` [B,T,1,1,1] are forecasts.
at::Tensor measured_inputs(const at::Tensor& valid, const at::Tensor& own) {
  const at::Tensor seen = valid.logical_and(own.logical_not()).to(at::kByte);
  const at::Tensor before = std::get<0>(seen.cummax(1)).to(at::kBool);
  return at::where(own, before, valid);
}

}  // namespace

Clips self_fed(models::Forecaster& forecaster, const Clips& clips, double probability, int64_t passes, Stream stream,
               const models::State& start) {
  at::NoGradGuard no_grad;
  at::Tensor Clips::*const kind = clips.video.defined() ? &Clips::video : &Clips::codes;
  const at::Tensor &truth = clips.*kind, &actions = clips.actions;
  const int64_t B = truth.size(0), T = truth.size(1);
  at::Tensor own = at::zeros({B, T}, at::kBool);
  auto chosen = own.accessor<bool, 2>();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 1; t < T; ++t) chosen[b][t] = stream.uniform() < probability;
  }
  own = own.to(truth.device())
            .view(truth.dim() == 5 ? std::vector<int64_t>{B, T, 1, 1, 1} : std::vector<int64_t>{B, T, 1, 1});
  const at::Tensor coming = actions.defined() ? actions.slice(1, 1) : actions;
  Clips fed = clips;
  fed.inputs = truth;
  if (clips.valid.defined()) fed.inputs_valid = measured_inputs(clips.valid, own);
  for (int64_t pass = 0; pass < passes; ++pass) {
    Clips seen = data::frames_of(clips, 0, T - 1);
    seen.*kind = fed.inputs.slice(1, 0, T - 1);
    if (fed.inputs_valid.defined()) seen.valid = fed.inputs_valid.slice(1, 0, T - 1);
    const at::Tensor next = forecaster.forecasts(seen, coming, start);
    fed.inputs = at::where(own, at::cat({truth.slice(1, 0, 1), next}, 1), truth);
  }
  return fed;
}

double self_feed_at(double last, int64_t step, int64_t steps) {
  return last * std::min(1.0, 2 * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(steps, 1)));
}

}  // namespace convssm::train
