// Scan problems for the tests: random coefficients inside the unit circle, in each form and with each shape of a.
#pragma once

#include <torch/torch.h>

#include "convssm/ops/scan.h"

namespace convssm::ops::testing {

enum class Form { real, split, complex };
enum class Coefficients { constant, per_step, per_sample, per_pixel };

inline const std::vector<Coefficients> kCoefficients{Coefficients::constant, Coefficients::per_step,
                                                     Coefficients::per_sample, Coefficients::per_pixel};

struct ScanCase {
  at::Tensor a, b, x0;
};

inline at::Tensor random_coefficients(at::IntArrayRef shape, Form form) {
  const auto real = at::TensorOptions().dtype(at::kDouble);
  const auto radius = 1 - 0.2 * at::rand(shape, real).square();  // many close to 1: long memory
  return form == Form::real ? radius : at::polar(radius, 6.28 * at::rand(shape, real));
}

// float64 / complex128; frame sizes are the axes between B and P.
inline ScanCase random_case(int64_t L, int64_t B, at::IntArrayRef frame, int64_t P, Form form, Coefficients kind) {
  std::vector<int64_t> shape{L, B};
  shape.insert(shape.end(), frame.begin(), frame.end());
  shape.push_back(form == Form::split ? 2 * P : P);
  const auto options = at::TensorOptions().dtype(form == Form::complex ? at::kComplexDouble : at::kDouble);
  std::vector<int64_t> a_shape{P};
  if (kind == Coefficients::per_step) a_shape = {L, P};
  if (kind == Coefficients::per_sample) a_shape = {L, B, P};
  if (kind == Coefficients::per_pixel) {
    a_shape = shape;
    a_shape.back() = P;
  }
  return {random_coefficients(a_shape, form), at::randn(shape, options),
          at::randn(at::IntArrayRef(shape).slice(1), options)};
}

inline ScanCase to_float(const ScanCase& c) {
  const auto cast = [](const at::Tensor& x) { return x.to(x.is_complex() ? at::kComplexFloat : at::kFloat); };
  return {cast(c.a), cast(c.b), cast(c.x0)};
}

inline ScanCase to_double(const ScanCase& c) {
  const auto cast = [](const at::Tensor& x) { return x.to(x.is_complex() ? at::kComplexDouble : at::kDouble); };
  return {cast(c.a), cast(c.b), cast(c.x0)};
}

inline at::Tensor join(const at::Tensor& split) {
  const int64_t P = split.size(-1) / 2;
  return at::complex(split.narrow(-1, 0, P).contiguous(), split.narrow(-1, P, P).contiguous());
}

inline at::Tensor as_numbers(const at::Tensor& x, Form form) { return form == Form::split ? join(x) : x; }

// The recurrence written out once more, frame by frame, on complex or real numbers.
inline at::Tensor loop(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0) {
  std::vector<at::Tensor> xs;
  at::Tensor x = x0;
  for (int64_t k = 0; k < b.size(0); ++k) {
    at::Tensor coefficient = a.dim() == 1 ? a : a[k];
    while (coefficient.dim() > 1 && coefficient.dim() < b.dim() - 1) coefficient = coefficient.unsqueeze(1);
    x = coefficient * x + b[k];
    xs.push_back(x);
  }
  return at::stack(xs);
}

// sum over j of |a|^(k-j) |b_j|: what rounding errors of lane and frame are measured against.
inline at::Tensor condition(const ScanCase& c, Form form) {
  return loop(c.a.abs(), as_numbers(c.b, form).abs(), as_numbers(c.x0, form).abs());
}

}  // namespace convssm::ops::testing
