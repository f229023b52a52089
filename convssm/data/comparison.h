// Pictures of forecasts beside the truth: the truth above, the forecast below, or any table of videos.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
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
// spread over the generated frames.
io::Image comparison_strip(const Comparison& clips, size_t first, size_t count, int64_t frames);

// All frames as a GIF, up to `count` clips side by side.
void save_comparison_gif(const Comparison& clips, size_t count, const std::string& path);

// Videos [T,C,H,W] of the same size that run together, laid out as a table.
struct VideoTable {
  std::vector<std::vector<at::Tensor>> rows;
  int64_t scale = 1;  // enlargement
  // What stands above the table in a frame, as wide as it and with as many channels; may be empty.
  std::function<io::Image(int64_t frame, int64_t width)> heading = {};
};
void save_table_gif(const VideoTable& table, const std::string& path);

}  // namespace convssm::data
