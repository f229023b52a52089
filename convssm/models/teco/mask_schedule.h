// How many tokens of a frame are hidden from the prior while it learns: a share rho of a uniform number u.
//   cosine cos(pi u / 2)   uniform 1 - u   pow 1 - u^p   log -log2(u) / log2(tokens)   exp 1 - exp2(-log2(tokens) (1 - u))
// At least one token is hidden.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/base/random.h"

namespace convssm::models {

struct MaskSchedule {
  std::string name = "cosine";
  double power = 2;  // of pow

  void check() const;  // Error(usage) for an unknown name
  int64_t hidden(double u, int64_t tokens) const;
};

// [frames,h,w] bool, true where a token is hidden; each frame draws for itself.
at::Tensor draw_masks(const MaskSchedule& schedule, int64_t frames, int64_t h, int64_t w, Stream random);

}  // namespace convssm::models
