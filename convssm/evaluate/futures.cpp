#include "convssm/evaluate/futures.h"

#include <ATen/ATen.h>

#include "convssm/generate/generate.h"
#include "convssm/generate/perturb.h"
#include "convssm/generate/rollout.h"

namespace convssm::evaluate {

at::Tensor Futures::of(const data::Clips& clips, int64_t K, int64_t first, int64_t future) {
  const at::Tensor& dt = clips.timing.dt;
  if (dt.defined()) engine_.compile = false;
  if (!predictor_ || predictor_->batch() != clips.batch() || (predictor_->compiled() && !engine_.compile)) {
    engine_.batch = clips.batch();
    predictor_.emplace(model_, engine_);
  }
  models::Seeds seeds;
  for (int64_t i = 0; i < clips.batch(); ++i) seeds.push_back(generate::future_seed(seed_, first + i, future));
  predictor_->start(data::frames_of(clips, 0, K), seeds);
  if (perturb_ > 0 && future > 0) {
    predictor_->start(generate::perturbed(predictor_->state(), std::vector<double>(seeds.size(), perturb_), seeds));
  }
  const at::Tensor coming = clips.actions.defined() ? clips.actions.slice(1, K) : clips.actions;
  const at::Tensor intervals = dt.defined() ? dt.slice(1, K) : dt;
  return generate::rollout(*predictor_, coming, clips.frames() - K, {}, intervals).cpu();
}

}  // namespace convssm::evaluate
