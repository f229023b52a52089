// A reset is a zero in a_k: the state before it drops out of the sum and the scan needs no branch. dt or resets give
// a_k its time axis; without them it stays [P] and one set of coefficients serves all frames. Computed in float64 and
// rounded at the end, as an error in the angle of a_k grows with k.
#include "convssm/ssm/diagonal_states.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::ssm {
namespace {

using ops::require;

void check_times(const char* operation, const char* name, const at::Tensor& x, int64_t L, int64_t B) {
  if (!x.defined()) return;
  const bool fits = x.sizes() == at::IntArrayRef{L} || x.sizes() == at::IntArrayRef{L, B};
  require(operation, fits, "{} must be [L] or [L,B] with L = {}, B = {}, got {}", name, L, B,
          ops::shape_text(x.sizes()));
  require(operation, !x.is_complex(), "{} must be real, got {}", name, ops::dtype_text(x));
  require(operation, !x.is_meta(), "{} must hold values, got a tensor on {}", name, x.device().str());
}

void check_intervals(const char* operation, const at::Tensor& dt) {
  const at::Tensor values = dt.to(at::kDouble), bad = (values > 0).logical_not().logical_or(values.isinf());
  if (!bad.any().item<bool>()) return;
  const double first = values.masked_select(bad)[0].item<double>();
  fail(ErrorKind::usage, "[{}] dt must be positive and finite, got {}", operation, first);
}

// [L] or [L,B] -> [L,1] or [L,B,1], to stand before the states.
at::Tensor per_state(const at::Tensor& times) { return times.unsqueeze(-1); }

}  // namespace

void check_timing(const char* operation, const Timing& timing, int64_t L, int64_t B) {
  check_times(operation, "dt", timing.dt, L, B);
  check_times(operation, "resets", timing.resets, L, B);
  require(operation, std::isfinite(timing.step_rescale) && timing.step_rescale > 0,
          "step_rescale must be positive, got {}", timing.step_rescale);
  if (timing.dt.defined()) check_intervals(operation, timing.dt);
}

Timing slice(const Timing& timing, int64_t begin, int64_t end) {
  Timing chunk = timing;
  if (timing.dt.defined()) chunk.dt = timing.dt.slice(0, begin, end);
  if (timing.resets.defined()) chunk.resets = timing.resets.slice(0, begin, end);
  return chunk;
}

void forget_states(DiscreteStates& states, const Timing& timing) {
  if (!timing.resets.defined()) return;
  at::Tensor forgotten = per_state(timing.resets.to(at::kBool)), a = states.a;
  if (a.dim() == 2 && forgotten.dim() == 3) a = a.unsqueeze(1);
  if (a.dim() == 3 && forgotten.dim() == 2) forgotten = forgotten.unsqueeze(1);
  const at::Tensor zero = at::zeros({}, a.options());
  states.a = at::where(forgotten, zero, a);
  states.fresh = at::where(forgotten, a, zero);
}

DiscreteStates discretize(const DiagonalStates& states, const Timing& timing) {
  const auto complex_type = c10::toComplexType(states.lambda_re.scalar_type());
  const at::Tensor re = clip_eigenvalues(states.lambda_re.to(at::kDouble), states.clip);
  const at::Tensor lambda = at::complex(re, states.lambda_im.to(at::kDouble));
  at::Tensor delta = states.log_step.to(at::kDouble).exp().squeeze(-1);
  if (timing.step_rescale != 1) delta = delta * timing.step_rescale;
  if (timing.dt.defined()) delta = delta * per_state(timing.dt.to(at::kDouble));
  const Discrete discrete = discretize(lambda, delta, states.method);
  DiscreteStates result{discrete.lambda_bar.to(complex_type), discrete.gamma.to(complex_type), {}};
  forget_states(result, timing);
  return result;
}

}  // namespace convssm::ssm
