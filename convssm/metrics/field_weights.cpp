// A pixel without weight may hold anything, NaN too, which times 0 would still be NaN: it is taken out before any sum.
#include "convssm/metrics/field_weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "convssm/ops/check.h"

namespace convssm::metrics {

at::Tensor latitude_weights(const std::vector<double>& latitudes) {
  ops::require("latitude_weights", !latitudes.empty(), "expected the latitude of each row, got none");
  std::vector<double> weights;
  for (const double degrees : latitudes) {
    ops::require("latitude_weights", std::abs(degrees) <= 90 + 1e-6, "latitudes must be -90 to 90 degrees, got {}",
                 degrees);
    weights.push_back(std::max(0.0, std::cos(degrees * std::numbers::pi / 180)));
  }
  const at::Tensor rows = at::tensor(weights, at::kDouble);
  const double mean = rows.mean().item<double>();
  return mean > 0 ? rows / mean : at::ones_like(rows);
}

at::Tensor pixel_weights(const at::Tensor& field, const at::Tensor& valid, const at::Tensor& rows) {
  ops::require("pixel_weights", field.dim() >= 2, "fields must be [...,H,W], got {}", ops::shape_text(field.sizes()));
  at::Tensor weights = at::ones(field.sizes(), at::kDouble);
  if (rows.defined()) {
    ops::require_shape("pixel_weights", "rows", rows, {field.size(-2)});
    weights.mul_(rows.to(at::kDouble).unsqueeze(1));
  }
  if (valid.defined()) {
    ops::require_shape("pixel_weights", "valid", valid, field.sizes());
    weights.mul_(valid.cpu().to(at::kDouble));
  }
  return weights;
}

WeighedFields check_fields(const char* metric, const at::Tensor& truth, const at::Tensor& forecast,
                           const at::Tensor& weights) {
  ops::require(metric, truth.defined() && truth.dim() >= 2 && truth.is_floating_point(),
               "truth must be fields [...,H,W] of floats, got {}",
               truth.defined() ? ops::dtype_text(truth) + ops::shape_text(truth.sizes()) : "an undefined tensor");
  ops::require(
      metric, forecast.defined() && forecast.sizes() == truth.sizes() && forecast.is_floating_point(),
      "forecast must be floats {} as truth is, got {}", ops::shape_text(truth.sizes()),
      forecast.defined() ? ops::dtype_text(forecast) + ops::shape_text(forecast.sizes()) : "an undefined tensor");
  WeighedFields fields{truth.detach().cpu().to(at::kDouble), forecast.detach().cpu().to(at::kDouble), {}};
  if (!weights.defined()) {
    fields.weights = at::ones(truth.sizes(), at::kDouble);
    return fields;
  }
  fields.weights = weights.cpu().to(at::kDouble).expand(truth.sizes());
  const at::Tensor none = fields.weights == 0;
  fields.truth = fields.truth.masked_fill(none, 0);
  fields.forecast = fields.forecast.masked_fill(none, 0);
  return fields;
}

}  // namespace convssm::metrics
