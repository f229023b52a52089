// Errors of fields in their units, as weighted sums over the pixels that add up over clips: what is averaged is the squared
// error, of all pixels and clips together, before the root is taken (as in WeatherBench 2).
//   FieldErrors all = field_errors(truth, forecast, weights);   rmse(all)   mae(all)   bias(all)
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

struct FieldErrors {
  at::Tensor weight;                    // of what was counted
  at::Tensor error, absolute, squared;  // sums of weight times forecast - truth, its size, its square
  void add(const FieldErrors& other);   // of the same shape; an empty one takes that of the other
  FieldErrors sum(int64_t dim) const;
};

// truth, forecast [...,H,W]; weights that broadcast to them (pixel_weights; undefined: all 1) -> sums [...] float64.
FieldErrors field_errors(const at::Tensor& truth, const at::Tensor& forecast, const at::Tensor& weights = {});

// NaN where nothing was counted.
at::Tensor rmse(const FieldErrors& sums);  // root of the mean square
at::Tensor mae(const FieldErrors& sums);   // mean absolute error
at::Tensor bias(const FieldErrors& sums);  // mean of forecast - truth: positive if the forecast is too high

// The anomaly correlation coefficient of each field: the uncentred correlation of truth - climatology with forecast -
// climatology over its pixels (WeatherBench 2; no mean over the field is taken off the anomalies). A mean over fields is
// of these coefficients. [...]; NaN where an anomaly is zero everywhere.
at::Tensor anomaly_correlation(const at::Tensor& truth, const at::Tensor& forecast, const at::Tensor& climatology,
                               const at::Tensor& weights = {});

}  // namespace convssm::metrics
