// Elementwise loops over `size` values, float32 or float64. Raw pointers only; checked by the caller.
#pragma once

#include <cstdint>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

template <typename T>
struct ActivateLoop {
  Activation activation;
  const T* x;
  const T* y;  // added to x first; nullptr = nothing
  T* sum;      // x + y, kept for the backward; nullptr = not wanted
  T* out;
  int64_t size;
};

// out = g * activation'(x)
template <typename T>
struct ActivateBackwardLoop {
  Activation activation;
  const T* x;
  const T* g;
  T* out;
  int64_t size;
};

void activate_loop(const ActivateLoop<float>& loop);
void activate_loop(const ActivateLoop<double>& loop);
void activate_backward_loop(const ActivateBackwardLoop<float>& loop);
void activate_backward_loop(const ActivateBackwardLoop<double>& loop);

}  // namespace convssm::ops
