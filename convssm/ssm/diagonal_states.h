// The diagonal state space of S5 and ConvS5 in discrete time, from its stored parameters:
//   Lambda = Lambda_re + i Lambda_im (real parts cut at -1e-4 if clipped),  Delta = exp(log_step),
//   a_k = lambda_bar(Lambda, s Delta dt_k),  gamma_k likewise, so that x_k = a_k x_{k-1} + gamma_k (B~ u)_k.
// Irregular steps, resets and a change of frame rate all enter through a_k and gamma_k.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ssm/discretize.h"

namespace convssm::ssm {

// When the frames of a sequence were taken. All optional.
struct Timing {
  at::Tensor dt;            // [L] or [L,B]: the interval before each frame, in units of the training interval; all > 0
  at::Tensor resets;        // [L] or [L,B] bool: the (finite) state is forgotten before this frame
  double step_rescale = 1;  // all intervals times this: 0.5 runs at twice the frame rate
  bool varies() const { return dt.defined() || resets.defined(); }
};

// Throws unless dt and resets are [L] or [L,B] and positive.
void check_timing(const char* operation, const Timing& timing, int64_t L, int64_t B);

// The timing of frames [begin,end) of a sequence.
Timing slice(const Timing& timing, int64_t begin, int64_t end);

struct DiagonalStates {
  at::Tensor lambda_re, lambda_im, log_step;  // [P], [P], [P,1]
  bool clip = true;
  Discretization method = Discretization::zoh;
};

struct DiscreteStates {
  at::Tensor a;      // complex, [P]; [L,P] or [L,B,P] if the timing varies
  at::Tensor gamma;  // complex, [P]; [L,P] or [L,B,P] if dt is given
  at::Tensor fresh;  // like a, if resets are given: where the state is forgotten, what a new state is multiplied by
};

// Where the timing has resets, a becomes zero and `fresh` what it was; elsewhere `fresh` is zero.
void forget_states(DiscreteStates& states, const Timing& timing);

// Computed in float64 and rounded to the precision of the parameters. Differentiable.
DiscreteStates discretize(const DiagonalStates& states, const Timing& timing);

}  // namespace convssm::ssm
