#include "convssm/metrics/field_errors.h"

#include <ATen/ATen.h>

#include "convssm/metrics/field_weights.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

at::Tensor over_pixels(const at::Tensor& x) { return x.sum({-2, -1}); }

void grow(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

}  // namespace

void FieldErrors::add(const FieldErrors& other) {
  grow(weight, other.weight);
  grow(error, other.error);
  grow(absolute, other.absolute);
  grow(squared, other.squared);
}

FieldErrors FieldErrors::sum(int64_t dim) const {
  return {weight.sum(dim), error.sum(dim), absolute.sum(dim), squared.sum(dim)};
}

FieldErrors field_errors(const at::Tensor& truth, const at::Tensor& forecast, const at::Tensor& weights) {
  const WeighedFields f = check_fields("field_errors", truth, forecast, weights);
  const at::Tensor error = f.forecast - f.truth;
  return {over_pixels(f.weights), over_pixels(f.weights * error), over_pixels(f.weights * error.abs()),
          over_pixels(f.weights * error * error)};
}

at::Tensor rmse(const FieldErrors& sums) { return (sums.squared / sums.weight).sqrt(); }
at::Tensor mae(const FieldErrors& sums) { return sums.absolute / sums.weight; }
at::Tensor bias(const FieldErrors& sums) { return sums.error / sums.weight; }

at::Tensor anomaly_correlation(const at::Tensor& truth, const at::Tensor& forecast, const at::Tensor& climatology,
                               const at::Tensor& weights) {
  const WeighedFields f = check_fields("anomaly_correlation", truth, forecast, weights);
  ops::require_shape("anomaly_correlation", "climatology", climatology, truth.sizes());
  const at::Tensor usual = climatology.cpu().to(at::kDouble).masked_fill(f.weights == 0, 0);
  const at::Tensor x = f.truth - usual, y = f.forecast - usual;
  return over_pixels(f.weights * x * y) / (over_pixels(f.weights * x * x) * over_pixels(f.weights * y * y)).sqrt();
}

}  // namespace convssm::metrics
