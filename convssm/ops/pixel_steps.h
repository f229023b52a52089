// Coefficients of the recurrence x_k = a_k x_{k-1} + b_k that depend on the input, for every pixel and state its own.
// Frames are [N,...,H,W], N = L B; states are P complex numbers, in b as 2P channels (Re half, then Im half).
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/step_rules.h"

namespace convssm::ops {

struct PixelCoefficients {
  at::Tensor a;  // complex [N,P,H,W]
  at::Tensor b;  // [N,2P,H,W]
};

// A time step from the input: with m the signal of a state in a pixel,
//   Delta = t rate(m),  z = lambda Delta,  a = exp(z),  b = gamma b,   t the interval before the frame
// and rate and gamma as StepRule and GainRule say. lambda must have negative real parts: |a| < 1 then, whatever the input.
// lambda_re, lambda_im, step float64 [P]; times float64 [N] or undefined for one; m [N,P,H,W] and b [N,2P,H,W], float32 or
// float64, which is also the precision of the result. Computed in float64. Differentiable once, not in times.
struct PixelStates {
  at::Tensor lambda_re, lambda_im;
  at::Tensor step;
  StepRule rule = StepRule::softplus;
  GainRule gain = GainRule::zoh;
};
PixelCoefficients pixel_steps(const PixelStates& states, const at::Tensor& times, const at::Tensor& m,
                              const at::Tensor& b);

// The same in plain tensor operations: the reference, any device, any derivative. Off the CPU it is what runs, and keeps about a
// hundred bytes for each state and frame.
PixelCoefficients pixel_steps_plain(const PixelStates& states, const at::Tensor& times, const at::Tensor& m,
                                    const at::Tensor& b);

}  // namespace convssm::ops
