// Draft and revise (Lee et al. 2022, arXiv 2206.04452): the tokens of a frame are drawn chunk by chunk in a random order; then
// again, `rounds` times, each chunk hidden and drawn anew from all others. Every clip has an order and draws of its own, so
// its tokens do not depend on the clips beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "convssm/models/codes/code_loss.h"

namespace convssm::models {

struct DraftOptions {
  int64_t draft = 8, revise = 8;  // chunks of a frame
  int64_t rounds = 2;             // of revising
  SamplingOptions sampling;

  int64_t passes() const { return draft + rounds * revise; }
};

// What the prior says of some places: tokens [B,n] and places [B,c], both int64 -> logits [B,c,K].
using PlaceLogits = std::function<at::Tensor(const at::Tensor& tokens, const at::Tensor& places)>;

// Tokens [B,n] int64. `hidden` is the hidden token. `position` (models/clip_random.h) is moved on.
at::Tensor draft_and_revise(at::Tensor& position, int64_t n, int64_t hidden, const DraftOptions& options,
                            const PlaceLogits& logits);

}  // namespace convssm::models
