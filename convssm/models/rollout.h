// Free-running forecasts: a model fed with its own frames.
#pragma once

#include <functional>

#include "convssm/models/model.h"

namespace convssm::models {

// context [B,K,C,H,W] -> the `frames` frames after it, [B,frames,C,H,W] in [-1,1]. actions: of context and future
// together, [B,K+frames], or undefined. `each`, if given, is called after every frame with the number so far; a false
// ends the rollout there.
at::Tensor rollout(Model& model, const at::Tensor& context, const at::Tensor& actions, int64_t frames,
                   const std::function<bool(int64_t)>& each = {});

}  // namespace convssm::models
