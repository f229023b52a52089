// Group norm of one frame for a range of its groups, so that threads can share a frame. Raw pointers only; checked by
// the caller.
#pragma once

#include <cstdint>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

struct GroupNormRange {
  Activation activation;
  int64_t pixels, channels, group_width;
  int64_t c0, c1;  // the channels of whole groups
  double eps;
  const float* x;  // [pixels, channels]
  const float* weight;
  const float* bias;
  float* out;
  double* sums;  // [channels], of which [c0,c1) are used, as of the others
  float* means;
  float* scales;
};

void group_norm_range(const GroupNormRange& range);

}  // namespace convssm::ops
