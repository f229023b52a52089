// The inner loops of pixel_steps.h: rows are pixels of one frame, with the channels of a pixel together. Raw pointers only;
// checked by the caller. Rows of a are pairs (re, im), those of b split: Re half, Im half.
#pragma once

#include <cstdint>

#include "convssm/ops/step_rules.h"

namespace convssm::ops {

struct StepConstants {
  int64_t P;
  StepRule rule;
  GainRule gain;
  const double *lambda_re, *lambda_im, *step;  // [P]; with the rule softplus, step is log(exp(step) - 1)
};

template <typename T>
struct StepRows {
  int64_t rows;
  double time;
  const T* m;
  const T* b;  // [rows,2P]
  T* a;        // [rows,2P]
  T* out;      // gamma b; may be b
};

template <typename T>
struct StepBackwardRows {
  int64_t rows;
  double time;
  const T *m, *b;
  const T *grad_a, *grad_out;  // nullptr = zero
  T *grad_m, *grad_b;
  double *grad_lambda_re, *grad_lambda_im, *grad_step;  // [P], added to
};

void step_rows(const StepConstants& constants, const StepRows<float>& rows);
void step_rows(const StepConstants& constants, const StepRows<double>& rows);
void step_backward_rows(const StepConstants& constants, const StepBackwardRows<float>& rows);
void step_backward_rows(const StepConstants& constants, const StepBackwardRows<double>& rows);

}  // namespace convssm::ops
