// nu and theta are logarithms, so that no step of an optimizer leaves the unit disc. The area of a ring grows with the
// square of its radius: |lambda|^2 is what is drawn uniformly. A pair of real states with matrix r (cos, -sin; sin, cos) has
// the eigenvector (1, -i) / sqrt(2) for r exp(i phase); its conjugate is left to 2 Re(C x).
#include "convssm/ssm/ring_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::ssm {
namespace {

// exp(nu) = -log |lambda| between these: neither r_min = 0 nor r_max = 1 makes a parameter infinite.
constexpr double kSlowest = 1e-12, kFastest = 100;

struct Rates {
  at::Tensor decay, phase;  // exp(nu), exp(theta) in float64
};

Rates rates(const RingStates& states) { return {states.nu.to(at::kDouble).exp(), states.theta.to(at::kDouble).exp()}; }

at::Tensor eigenvalues(const Rates& r) {
  const at::Tensor radius = at::exp(-r.decay);
  return at::complex(radius * at::cos(r.phase), radius * at::sin(r.phase));
}

}  // namespace

void check_ring(const char* operation, const Ring& ring) {
  ops::require(operation, ring.r_min >= 0 && ring.r_min < ring.r_max && ring.r_max <= 1,
               "expected 0 <= r_min < r_max <= 1, got r_min {} and r_max {}", ring.r_min, ring.r_max);
  ops::require(operation, ring.max_phase > 0 && ring.max_phase <= 2 * M_PI * (1 + 1e-12),
               "max_phase must be above 0 and at most 2 pi, got {}", ring.max_phase);
}

RingStates init_ring(int64_t states, const Ring& ring, Stream& stream) {
  check_ring("init_ring", ring);
  ops::require("init_ring", states > 0, "states must be positive, got {}", states);
  const at::Tensor nu = at::empty({states}, at::kDouble), theta = at::empty({states}, at::kDouble);
  for (int64_t p = 0; p < states; ++p) {
    const double square = stream.uniform(ring.r_min * ring.r_min, ring.r_max * ring.r_max);
    nu.data_ptr<double>()[p] = std::log(std::clamp(-0.5 * std::log(square), kSlowest, kFastest));
    theta.data_ptr<double>()[p] = std::log(ring.max_phase * (1 - stream.uniform()));
  }
  return {nu.to(at::kFloat), theta.to(at::kFloat)};
}

Spectrum ring_spectrum(const RingStates& states) {
  const at::NoGradGuard no_grad;
  const int64_t P = states.nu.size(0);
  const at::Tensor one = std::sqrt(0.5) * at::eye(P, at::kDouble), none = at::zeros({P, P}, at::kDouble);
  const at::Tensor v =
      at::cat({at::complex(one, none), at::complex(none, -one)});  // [2P,P]: first of all pairs, second
  return {eigenvalues(rates(states)), v, v.t().conj().resolve_conj()};
}

DiscreteStates discretize(const RingStates& states, const Timing& timing) {
  const auto complex_type = c10::toComplexType(states.nu.scalar_type());
  const Rates r = rates(states);
  const at::Tensor gamma = at::sqrt(-at::expm1(-2 * r.decay));
  DiscreteStates result{
      eigenvalues(r).to(complex_type), at::complex(gamma, at::zeros_like(gamma)).to(complex_type), {}};
  forget_states(result, timing);
  return result;
}

}  // namespace convssm::ssm
