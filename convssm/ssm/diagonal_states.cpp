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
}

// [L] or [L,B] -> [L,1] or [L,B,1], to stand before the states.
at::Tensor per_state(const at::Tensor& times) { return times.unsqueeze(-1); }

at::Tensor forget(const at::Tensor& a, const at::Tensor& resets) {
  const at::Tensor kept = per_state(resets.to(at::kBool).logical_not()).to(a.scalar_type());
  if (a.dim() == 2 && kept.dim() == 3) return a.unsqueeze(1) * kept;
  if (a.dim() == 3 && kept.dim() == 2) return a * kept.unsqueeze(1);
  return a * kept;
}

}  // namespace

void check_timing(const char* operation, const Timing& timing, int64_t L, int64_t B) {
  check_times(operation, "dt", timing.dt, L, B);
  check_times(operation, "resets", timing.resets, L, B);
  require(operation, std::isfinite(timing.step_rescale) && timing.step_rescale > 0,
          "step_rescale must be positive, got {}", timing.step_rescale);
  if (timing.dt.defined()) check_delta(timing.dt);
}

Timing slice(const Timing& timing, int64_t begin, int64_t end) {
  Timing part = timing;
  if (timing.dt.defined()) part.dt = timing.dt.slice(0, begin, end);
  if (timing.resets.defined()) part.resets = timing.resets.slice(0, begin, end);
  return part;
}

DiscreteStates discretize(const DiagonalStates& states, const Timing& timing) {
  const auto complex_type = c10::toComplexType(states.lambda_re.scalar_type());
  const at::Tensor re = clip_eigenvalues(states.lambda_re.to(at::kDouble), states.clip);
  const at::Tensor lambda = at::complex(re, states.lambda_im.to(at::kDouble));
  at::Tensor delta = states.log_step.to(at::kDouble).exp().squeeze(-1);
  if (timing.step_rescale != 1) delta = delta * timing.step_rescale;
  if (timing.dt.defined()) delta = delta * per_state(timing.dt.to(at::kDouble));
  const Discrete discrete = discretize(lambda, delta, states.method);
  DiscreteStates result{discrete.lambda_bar.to(complex_type), discrete.gamma.to(complex_type)};
  if (timing.resets.defined()) result.a = forget(result.a, timing.resets);
  return result;
}

}  // namespace convssm::ssm
