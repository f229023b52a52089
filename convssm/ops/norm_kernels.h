// The inner loops of the normalizations: one frame (group norm) or a run of pixels (layer norm), channels together.
// Raw pointers only; checked by the caller. Gradients of weight and bias are added to, in double.
#pragma once

#include <cstdint>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

template <typename T>
struct GroupNormFrame {
  Activation activation;
  int64_t pixels, channels, groups;
  double eps;
  const T* x;  // [pixels, channels]
  const T* weight;
  const T* bias;
  T* out;
  double* mean;  // [groups]: written by the forward, read by the backward
  double* rstd;
  T* scratch;  // 4 * channels
};

template <typename T>
struct GroupNormBackwardFrame : GroupNormFrame<T> {  // `out` is the gradient of x
  const T* g;
  double* grad_weight;  // [channels]
  double* grad_bias;
  double* sums;  // 2 * channels
};

template <typename T>
struct LayerNormRows {
  int64_t rows, channels;
  double eps;
  const T* x;  // [rows, channels]
  const T* y;  // added to x first; nullptr = nothing
  const T* weight;
  const T* bias;
  T* sum;  // x + y, kept for the backward; nullptr = not wanted
  T* out;
};

template <typename T>
struct LayerNormBackwardRows {
  int64_t rows, channels;
  double eps;
  const T* x;  // the sum
  const T* g;
  const T* weight;
  T* out;
  T* scratch;  // 2 * channels, zero at the start and at the end
  double* grad_weight;
  double* grad_bias;
};

void group_norm_frame(const GroupNormFrame<float>& frame);
void group_norm_frame(const GroupNormFrame<double>& frame);
void group_norm_backward_frame(const GroupNormBackwardFrame<float>& frame);
void group_norm_backward_frame(const GroupNormBackwardFrame<double>& frame);
void layer_norm_rows(const LayerNormRows<float>& rows);
void layer_norm_rows(const LayerNormRows<double>& rows);
void layer_norm_backward_rows(const LayerNormBackwardRows<float>& rows);
void layer_norm_backward_rows(const LayerNormBackwardRows<double>& rows);

}  // namespace convssm::ops
