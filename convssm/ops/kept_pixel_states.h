// The states of ops/pixel_steps.h as its kernels take them, for operations and plans that run them.
#pragma once

#include "convssm/ops/pixel_steps.h"
#include "convssm/ops/pixel_steps_kernels.h"

namespace convssm::ops {

// In memory of their own.
struct KeptPixelStates {
  at::Tensor lambda_re, lambda_im, step;
  StepRule rule;
  GainRule gain;
  StepConstants constants() const;
};
KeptPixelStates keep_states(const PixelStates& states);

// log(exp(step) - 1), of which softplus makes the step again.
at::Tensor before_softplus(const at::Tensor& step);

// `step` as StepConstants has it.
at::Tensor kernel_step(const PixelStates& states);

}  // namespace convssm::ops
