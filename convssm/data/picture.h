// Frames as pictures for people: one frame, rows of frames side by side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convssm/io/png.h"

namespace convssm::data {

// frame [C,H,W] in [-1,1] -> 8-bit pixels, each enlarged to scale x scale. Three channels are RGB; of any other number
// the first is shown in grey.
io::Image picture(const at::Tensor& frame, int64_t scale = 1);

// rows[i][j]: pictures of the same size, laid out as a table with `gap` pixels of mid grey between them.
io::Image table_picture(const std::vector<std::vector<io::Image>>& rows, int64_t gap = 2);

// One picture above another of the same width and channels.
io::Image stack_pictures(const io::Image& above, const io::Image& below);

// Videos [T,C,H,W] of the same length, one row each, at the given frames.
io::Image strip_picture(const std::vector<at::Tensor>& videos, const std::vector<int64_t>& frames, int64_t scale = 1);

// The enlargement that brings frames of this width near 64 pixels.
int64_t friendly_scale(int64_t width);

}  // namespace convssm::data
