// Frames for the tests of video files, and how much two videos differ.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/video_format.h"

namespace convssm::io {

using Frame = std::vector<uint8_t>;

// The format of a video of any length.
inline VideoFormat of_size(int64_t width, int64_t height, int64_t channels, double fps = 10, int64_t scale = 1) {
  return {.width = width, .height = height, .channels = channels, .fps = fps, .scale = scale};
}

// A smooth pattern that moves with t, u8 [height, width, channels].
inline Frame smooth_frame(int64_t width, int64_t height, int64_t channels, int64_t t) {
  Frame frame;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const double wave = std::sin(0.11 * static_cast<double>(x + 2 * t) + static_cast<double>(c)) *
                            std::cos(0.07 * static_cast<double>(y - t));
        frame.push_back(static_cast<uint8_t>(std::lround(127.5 + 100 * wave)));
      }
    }
  }
  return frame;
}

// Noise without any order.
inline Frame noise_frame(int64_t size, uint32_t seed) {
  Frame frame;
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < size; ++i)
    frame.push_back(static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24));
  return frame;
}

// [height, width, channels] to [height * scale, width * scale, channels].
inline Frame enlarged(const Frame& frame, int64_t width, int64_t height, int64_t channels, int64_t scale) {
  Frame out;
  for (int64_t y = 0; y < height * scale; ++y) {
    for (int64_t x = 0; x < width * scale; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        out.push_back(frame[static_cast<size_t>(((y / scale) * width + x / scale) * channels + c)]);
      }
    }
  }
  return out;
}

inline double psnr(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  if (a.size() != b.size()) return -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / sum);
}

inline Array stack(const std::vector<Frame>& frames, int64_t height, int64_t width, int64_t channels) {
  Frame all;
  for (const Frame& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
  return make_array({std::ssize(frames), height, width, channels}, all);
}

}  // namespace convssm::io
