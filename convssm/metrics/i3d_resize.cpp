// Weights along an axis are computed once for all frames, in float32 as TensorFlow computes them. Its rule without half
// pixels is the one that published numbers were made with, and libtorch's resize does not have it.
#include "convssm/metrics/i3d_resize.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convssm/metrics/frames.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

struct Tap {
  int64_t low, high;
  float share;  // of the high one
};
using Taps = std::array<Tap, i3d_size>;

// In float32, as TensorFlow computes it.
Taps taps(int64_t n, I3dResize resize) {
  const float scale = static_cast<float>(n) / static_cast<float>(i3d_size);
  Taps out;
  for (int64_t i = 0; i < i3d_size; ++i) {
    const float index = static_cast<float>(i);
    const float source = resize == I3dResize::half_pixel ? std::max((index + 0.5f) * scale - 0.5f, 0.f) : index * scale;
    const int64_t low = std::min(static_cast<int64_t>(source), n - 1);
    out[static_cast<size_t>(i)] = {low, std::min(low + 1, n - 1), source - static_cast<float>(low)};
  }
  return out;
}

void resize_plane(const float* in, int64_t width, const Taps& rows, const Taps& columns, float* out) {
  for (const Tap& row : rows) {
    const float *top = in + row.low * width, *bottom = in + row.high * width;
    for (const Tap& column : columns) {
      const float upper = top[column.low] + (top[column.high] - top[column.low]) * column.share;
      const float lower = bottom[column.low] + (bottom[column.high] - bottom[column.low]) * column.share;
      *out++ = 2 * (upper + (lower - upper) * row.share) / 255 - 1;
    }
  }
}

}  // namespace

void check_i3d_clip(const at::Tensor& clip) {
  ops::require_dims("fvd_i3d", "clip", clip, 4, "[T,C,H,W]");
  ops::require("fvd_i3d", clip.size(1) == 1 || clip.size(1) == 3,
               "clip must be [T,C,H,W] with 1 (grey) or 3 (RGB) channels, got {}", ops::shape_text(clip.sizes()));
  if (clip.scalar_type() == at::kByte) return;
  ops::require("fvd_i3d", clip.scalar_type() == at::kFloat, "clip must be uint8 or float32 in [0,1], got {}",
               ops::dtype_text(clip));
  check_f01_range("fvd_i3d", "clip", clip);
}

at::Tensor i3d_frames(const at::Tensor& frames, I3dResize resize) {
  at::Tensor pixels = frames.detach().cpu().to(at::kFloat);
  if (frames.scalar_type() != at::kByte) pixels = pixels * 255;
  pixels = pixels.contiguous();
  const int64_t count = frames.size(0), channels = frames.size(1), height = frames.size(2), width = frames.size(3);
  const Taps rows = taps(height, resize), columns = taps(width, resize);
  at::Tensor out = at::empty({channels, count, i3d_size, i3d_size}, at::kFloat);
  const float* from = pixels.data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, channels * count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i % count * channels + i / count;
      resize_plane(from + plane * height * width, width, rows, columns, to + i * i3d_size * i3d_size);
    }
  });
  return out;
}

}  // namespace convssm::metrics
