// How much each pixel of a field counts in a score: nothing where it was not measured, and else by the cosine of its latitude
// where rows of a regular grid stand for less of the Earth towards the poles.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convssm::metrics {

// cos(latitude) of each row, degrees, over its mean: [H] float64, mean 1. Poles count 0, never less.
at::Tensor latitude_weights(const std::vector<double>& latitudes);

// [...,H,W] float64 for fields like `field`: `rows` [H] (undefined: 1 for each) where `valid`, of the same shape as the
// field, is true (undefined: everywhere), else 0.
at::Tensor pixel_weights(const at::Tensor& field, const at::Tensor& valid, const at::Tensor& rows);

// What functions of fields check first: [...,H,W] floats of one shape and weights that broadcast to it, all 1 if undefined.
struct WeighedFields {
  at::Tensor truth, forecast;  // float64, on the CPU, 0 where the weight is
  at::Tensor weights;          // float64, of their shape
};
WeighedFields check_fields(const char* metric, const at::Tensor& truth, const at::Tensor& forecast,
                           const at::Tensor& weights);

}  // namespace convssm::metrics
