// The inner loops of liquid.h: rows are pixels of one frame, with the channels of a pixel together. Raw pointers only; checked
// by the caller. Rows of a are pairs (re, im), those of b split: Re half, Im half.
#pragma once

#include <cstdint>

namespace convssm::ops {

template <typename T>
struct LiquidRows {
  int64_t rows, P;
  const T *a_bar, *l;  // [P] pairs
  const T* b;
  T* a;
};

template <typename T>
struct LiquidBackwardRows {
  int64_t rows, P;
  const T *a_bar, *l, *b;
  const T* grad_a;
  T* grad_b;
  double *grad_a_bar, *grad_l;  // [P] pairs, added to
};

void liquid_rows(const LiquidRows<float>& rows);
void liquid_rows(const LiquidRows<double>& rows);
void liquid_backward_rows(const LiquidBackwardRows<float>& rows);
void liquid_backward_rows(const LiquidBackwardRows<double>& rows);

}  // namespace convssm::ops
