// Values are drawn one after the other in double and rounded at the end: the same stream gives the same weights on
// every machine, with any number of threads. Fans are those of the real matrices before they are projected onto the
// spectrum.
#include "convssm/ssm/initializers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::ssm {
namespace {

using ops::require;

// The standard deviation of a standard normal cut at +-2.
constexpr double truncated_std = 0.87962566103423978;
constexpr double bound = 2.0;

template <typename Draw>
at::Tensor fill(at::IntArrayRef shape, Draw draw) {
  auto x = at::empty(shape, at::kDouble);
  double* values = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = draw();
  return x;
}

at::Tensor draw_normal(at::IntArrayRef shape, double std, bool truncated, Stream& stream) {
  require("initializers", std >= 0 && std::isfinite(std), "std must be finite and not negative, got {}", std);
  if (WithoutValues::now()) return at::zeros(shape, at::kFloat);
  if (!truncated) return fill(shape, [&] { return std * stream.normal(); });
  const double scale = std / truncated_std;
  return fill(shape, [&] { return scale * stream.truncated_normal(bound); });
}

double fan_in_std(double scale, int64_t fan_in) {
  require("initializers", fan_in > 0, "fan_in must be positive, got {}", fan_in);
  require("initializers", scale > 0, "scale must be positive, got {}", scale);
  return std::sqrt(scale / static_cast<double>(fan_in));
}

at::Tensor as_pairs(const at::Tensor& x) { return at::view_as_real(x.contiguous()).to(at::kFloat); }

void check_sizes(int64_t features, int64_t kernel) {
  require("initializers", features > 0, "features must be positive, got {}", features);
  require("initializers", kernel > 0, "kernel must be positive, got {}", kernel);
}

// V^-1 B0 or C0 V.
at::Tensor projected(const at::Tensor& left, const at::Tensor& right) {
  if (WithoutValues::now()) return at::zeros({left.size(0), right.size(1)}, at::kComplexDouble);
  return at::matmul(left.to(at::kComplexDouble), right.to(at::kComplexDouble));
}

}  // namespace

int& WithoutValues::depth() {
  static thread_local int depth = 0;
  return depth;
}

at::Tensor normal(at::IntArrayRef shape, double std, Stream& stream) {
  return draw_normal(shape, std, false, stream).to(at::kFloat);
}

at::Tensor truncated_normal(at::IntArrayRef shape, double std, Stream& stream) {
  return draw_normal(shape, std, true, stream).to(at::kFloat);
}

// The Q of a QR decomposition is uniform if the diagonal of R is positive.
at::Tensor orthogonal(int64_t n, Stream& stream) {
  if (WithoutValues::now()) return at::zeros({n, n}, at::kFloat);
  const auto [q, r] = at::linalg_qr(draw_normal({n, n}, 1, false, stream));
  return (q * r.diagonal().sign()).to(at::kFloat);
}

at::Tensor variance_scaling(at::IntArrayRef shape, double scale, int64_t fan_in, bool truncated, Stream& stream) {
  return draw_normal(shape, fan_in_std(scale, fan_in), truncated, stream).to(at::kFloat);
}

at::Tensor lecun_normal(at::IntArrayRef shape, int64_t fan_in, Stream& stream) {
  return variance_scaling(shape, 1.0, fan_in, true, stream);
}

at::Tensor he_normal(at::IntArrayRef shape, int64_t fan_in, Stream& stream) {
  return variance_scaling(shape, 2.0, fan_in, true, stream);
}

at::Tensor init_log_step(int64_t states, double dt_min, double dt_max, Stream& stream) {
  require("initializers", states > 0, "states must be positive, got {}", states);
  require("initializers", dt_min > 0, "dt_min must be positive, got {}", dt_min);
  require("initializers", dt_max >= dt_min && std::isfinite(dt_max),
          "dt_max must be finite and at least dt_min = {}, got {}", dt_min, dt_max);
  const double lo = std::log(dt_min), hi = std::log(dt_max);
  return fill({states, 1}, [&] { return stream.uniform(lo, hi); }).to(at::kFloat);
}

at::Tensor init_conv_b(const Spectrum& spectrum, int64_t features, int64_t kernel, Stream& stream) {
  check_sizes(features, kernel);
  const int64_t columns = features * kernel * kernel;
  const auto b0 = draw_normal({spectrum.v.size(0), columns}, fan_in_std(2.0, columns), true, stream);
  return as_pairs(projected(spectrum.v_inverse, b0));
}

at::Tensor init_conv_c(const Spectrum& spectrum, int64_t features, int64_t kernel, Stream& stream) {
  check_sizes(features, kernel);
  const int64_t n = spectrum.v.size(0), p = spectrum.v.size(1);
  const double std = fan_in_std(2.0, n * kernel * kernel);
  const auto c0 = draw_normal({features * kernel * kernel, n}, std, true, stream);
  const auto c = projected(c0, spectrum.v);
  return as_pairs(c.view({features, kernel, kernel, p}).permute({1, 2, 3, 0}));
}

at::Tensor init_s5_b(const Spectrum& spectrum, int64_t features, Stream& stream) {
  check_sizes(features, 1);
  const int64_t n = spectrum.v.size(0);
  const auto b0 = draw_normal({n, features}, fan_in_std(1.0, n), true, stream);
  return as_pairs(projected(spectrum.v_inverse, b0));
}

at::Tensor init_s5_c(const Spectrum& spectrum, int64_t features, Stream& stream) {
  check_sizes(features, 1);
  const int64_t n = spectrum.v.size(0);
  const auto c0 = draw_normal({features, n, 2}, fan_in_std(1.0, n), true, stream);
  return as_pairs(projected(at::view_as_complex(c0), spectrum.v));
}

}  // namespace convssm::ssm
