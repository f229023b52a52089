// Random initial values, drawn in double from a named stream. "Truncated" means cut at two standard deviations of the
// normal that was cut and rescaled, so that `std` is the standard deviation of what comes out.
// The projections onto a spectrum are B~ = V^-1 B0 and C~ = C0 V, in complex128, stored as pairs (re, im).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/base/random.h"
#include "convssm/ssm/hippo.h"

namespace convssm::ssm {

// While one lives, in its thread: initial values are zeros and spectra of HiPPO are not solved, but shapes are what they would
// be. For counting large models, whose values take minutes to draw.
class WithoutValues {
 public:
  WithoutValues() { ++depth(); }
  ~WithoutValues() { --depth(); }
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;
  static bool now() { return depth() > 0; }

 private:
  static int& depth();
};

// All of these: float32 of the given shape.
at::Tensor normal(at::IntArrayRef shape, double std, Stream& stream);
at::Tensor truncated_normal(at::IntArrayRef shape, double std, Stream& stream);
at::Tensor variance_scaling(at::IntArrayRef shape, double scale, int64_t fan_in, bool truncated, Stream& stream);
at::Tensor lecun_normal(at::IntArrayRef shape, int64_t fan_in, Stream& stream);  // truncated, variance 1 / fan_in
at::Tensor he_normal(at::IntArrayRef shape, int64_t fan_in, Stream& stream);     // truncated, variance 2 / fan_in

// A random orthogonal matrix [n,n], uniform among all.
at::Tensor orthogonal(int64_t n, Stream& stream);

// log delta, uniform in [log dt_min, log dt_max): [states,1] float32.
at::Tensor init_log_step(int64_t states, double dt_min, double dt_max, Stream& stream);

// ConvS5: real he_normal B0 [N, U k k] (fan_in U k k) and C0 [U k k, N] (fan_in N k k) in eigen-coordinates.
at::Tensor init_conv_b(const Spectrum& spectrum, int64_t features, int64_t kernel, Stream& stream);  // [P, U*k*k, 2]
at::Tensor init_conv_c(const Spectrum& spectrum, int64_t features, int64_t kernel, Stream& stream);  // [k,k,P,U,2]

// S5: real B0 [N,U] and complex C0 [U,N], whose parts are truncated normal with variance 1/N each.
at::Tensor init_s5_b(const Spectrum& spectrum, int64_t features, Stream& stream);  // [P,U,2]
at::Tensor init_s5_c(const Spectrum& spectrum, int64_t features, Stream& stream);  // [U,P,2]

}  // namespace convssm::ssm
