// The states of the Linear Recurrent Unit: eigenvalues in discrete time, inside of the unit circle by construction,
//   lambda = exp(-exp(nu) + i exp(theta)),   x_k = lambda x_{k-1} + sqrt(1 - |lambda|^2) (B~ u)_k.
// There is no time step, so they know the order of frames and not the time between them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/base/random.h"
#include "convssm/ssm/diagonal_states.h"
#include "convssm/ssm/hippo.h"

namespace convssm::ssm {

// Where eigenvalues begin: r_min <= |lambda| < r_max, angles in (0, max_phase], uniform in the area of that sector.
struct Ring {
  double r_min = 0.9, r_max = 0.999, max_phase = 6.283185307179586;
};

// Throws unless 0 <= r_min < r_max <= 1 and 0 < max_phase <= 2 pi.
void check_ring(const char* operation, const Ring& ring);

struct RingStates {
  at::Tensor nu, theta;  // [P]
};

// Initial values of P states, float32.
RingStates init_ring(int64_t states, const Ring& ring, Stream& stream);

// Pairs of real states that turn together, and their complex coordinates: what B~ and C~ are projected with. lambda is
// that of the states.
Spectrum ring_spectrum(const RingStates& states);

// As discretize() of DiagonalStates: in float64, rounded to the precision of the parameters, differentiable. The timing
// may have resets; dt and step_rescale are for the caller to refuse.
DiscreteStates discretize(const RingStates& states, const Timing& timing);

}  // namespace convssm::ssm
