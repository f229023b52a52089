// phi(z) = (exp(z) - 1) / z loses all digits near 0, so a series takes over there; elsewhere the numerator is written
// in real and imaginary parts with expm1, which has no cancellation. Both branches are tensors of the whole shape:
// phi() says how their gradients stay finite.
#include "convssm/ssm/discretize.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::ssm {
namespace {

using ops::require;

constexpr double series_radius = 0.125;
constexpr int series_terms = 12;  // radius^12 / 13! < 1e-20
constexpr double largest_real_part = -1e-4;

// phi(z) = 1 + z/2 (1 + z/3 (1 + z/4 ...)), for |z| < series_radius.
at::Tensor phi_series(const at::Tensor& z) {
  auto sum = at::ones_like(z);
  for (int n = series_terms; n >= 1; --n) sum = 1 + z * sum / (n + 1);
  return sum;
}

// exp(z) - 1 = expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y), without cancellation near the zeros z = 2 pi i n.
at::Tensor complex_expm1(const at::Tensor& z) {
  const auto x = at::real(z), y = at::imag(z);
  return at::complex(at::expm1(x) * at::cos(y) - 2 * at::square(at::sin(0.5 * y)), at::exp(x) * at::sin(y));
}

at::Tensor polar_exp(const at::Tensor& z) {
  const auto x = at::real(z), y = at::imag(z);
  return at::complex(at::exp(x) * at::cos(y), at::exp(x) * at::sin(y));
}

void check_arguments(const at::Tensor& lambda, const at::Tensor& delta) {
  require("discretize", lambda.defined() && lambda.scalar_type() == at::kComplexDouble,
          "lambda must be complex128, got {}", lambda.defined() ? ops::dtype_text(lambda) : "an undefined tensor");
  require("discretize", delta.defined() && delta.scalar_type() == at::kDouble, "delta must be float64, got {}",
          delta.defined() ? ops::dtype_text(delta) : "an undefined tensor");
  require("discretize", at::are_expandable(lambda.sizes(), delta.sizes()),
          "lambda and delta must be broadcastable, got {} and {}", ops::shape_text(lambda.sizes()),
          ops::shape_text(delta.sizes()));
}

}  // namespace

const char* name(Discretization method) {
  switch (method) {
    case Discretization::zoh:
      return "zoh";
    case Discretization::bilinear:
      return "bilinear";
    default:
      return "euler";
  }
}

Discretization parse_discretization(const std::string& text) {
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    if (text == name(method)) return method;
  }
  fail(ErrorKind::usage, "[discretize] discretization must be zoh, bilinear or euler, got '{}'", text);
}

at::Tensor phi(const at::Tensor& z) {
  // Each branch sees only arguments on which it and its derivative are finite: a NaN in the branch that `where` drops
  // would still reach the gradient as 0 * NaN.
  const auto small = at::abs(z.detach()) < series_radius;
  const auto z_small = at::where(small, z, at::zeros_like(z));
  const auto z_large = at::where(small, at::ones_like(z), z);
  return at::where(small, phi_series(z_small), complex_expm1(z_large) / z_large);
}

Discrete discretize(const at::Tensor& lambda, const at::Tensor& delta, Discretization method) {
  check_arguments(lambda, delta);
  check_delta(delta);
  const auto z = lambda * delta;
  if (method == Discretization::zoh) return {polar_exp(z), delta * phi(z)};
  if (method == Discretization::bilinear) return {(1 + 0.5 * z) / (1 - 0.5 * z), delta / (1 - 0.5 * z)};
  return {1 + z, delta * at::ones_like(z)};
}

at::Tensor clip_eigenvalues(const at::Tensor& lambda_re, bool clip) {
  return clip ? at::clamp_max(lambda_re, largest_real_part) : lambda_re;
}

void check_delta(const at::Tensor& delta) {
  const auto bad = at::logical_or(at::logical_not(at::isfinite(delta)), delta <= 0);
  if (!bad.any().item<bool>()) return;
  const auto place = at::nonzero(bad.reshape({-1}))[0].item<int64_t>();
  const double value = delta.reshape({-1})[place].item<double>();
  const auto kind = std::isfinite(value) ? ErrorKind::usage : ErrorKind::numeric;
  fail(kind, "[discretize] the time step delta must be positive and finite, got {} at element {} of {}", value, place,
       ops::shape_text(delta.sizes()));
}

}  // namespace convssm::ssm
