// The futures that a model gives clips, one batch after another, by one predictor for batches of one size: compiling it costs
// about as much as a frame.
#pragma once

#include <optional>

#include "convssm/data/clips.h"
#include "convssm/generate/predictor.h"

namespace convssm::evaluate {

class Futures {
 public:
  // `engine` but for its batch, and not compiled for clips of uneven times. The seed of a future is a function of `seed`, the number of its clip and its own. All but the first
  // begin with a memory that is perturbed (generate/perturb.h).
  Futures(models::Model& model, const generate::PredictorOptions& engine, uint64_t seed, double perturb = 0)
      : model_(model), engine_(engine), seed_(seed), perturb_(perturb) {}

  // Future number `future` after the first K frames of clips, the first of which has the number `first`: [B,T-K,C,H,W].
  at::Tensor of(const data::Clips& clips, int64_t K, int64_t first, int64_t future);

  const char* engine() const { return predictor_ && predictor_->compiled() ? "plan" : "eager"; }

 private:
  models::Model& model_;
  generate::PredictorOptions engine_;
  uint64_t seed_;
  double perturb_;
  std::optional<generate::Predictor> predictor_;
};

}  // namespace convssm::evaluate
