// The loop of free-running generation, the only one: generate, evaluate and the samples of a training run it.
#pragma once

#include <functional>
#include <vector>

#include "convssm/generate/predictor.h"

namespace convssm::generate {

struct RolloutEnd {
  int64_t frames = 0;     // given to `each`
  bool diverged = false;  // the frame after these holds NaN or infinity
};

// Up to `frames` frames from where the predictor was started, each [B,C,H,W] given to `each`, whose false ends the rollout.
// actions [B,frames] or [B,frames,A], or undefined.
RolloutEnd for_each_forecast(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                             const std::function<bool(const at::Tensor& frame)>& each);

// The same of several predictors side by side, such as checkpoints of one training, moment by moment: `each` is given the frame of
// every predictor.
RolloutEnd for_each_forecast(const std::vector<Predictor*>& predictors, const at::Tensor& actions, int64_t frames,
                             const std::function<bool(const std::vector<at::Tensor>& all)>& each);

// The frames together, [B,frames,C,H,W]. `each`, if given, is told the number so far; a false ends the rollout there.
// `dt` [B,frames]: the intervals before them, for models of continuous time that run eagerly; undefined: 1. Error(numeric) if a frame
// holds NaN or infinity.
at::Tensor rollout(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                   const std::function<bool(int64_t)>& each = {}, const at::Tensor& dt = {});

}  // namespace convssm::generate
