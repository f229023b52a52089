// Pictures of a forecast beside the truth: the truth above, the forecast below.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "convssm/io/png.h"

namespace convssm::data {

// Clips [T,C,H,W] in [-1,1], the context included in both.
struct Comparison {
  std::vector<at::Tensor> truth, forecast;
  int64_t context = 0;
};

// A row of truth and a row of forecast for each of the clips `first` .. `first + count - 1`, at up to `frames` moments
// spread over the generated part.
io::Image comparison_strip(const Comparison& clips, size_t first, size_t count, int64_t frames);

// All frames as a GIF, up to `count` clips side by side.
void save_comparison_gif(const Comparison& clips, size_t count, const std::string& path);

}  // namespace convssm::data
