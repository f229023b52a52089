// What a writer of videos needs to know of the frames, and the checks that all of them share. A frame is
// u8 [height, width, channels]; channels 1 is grey, 3 is RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convssm::io {

struct VideoFormat {
  int64_t frames = 0;  // how many will come
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 3;
  double fps = 10;    // of all but .png
  int64_t scale = 1;  // each pixel becomes scale x scale pixels
};

// Error(usage) unless the frames are grey or RGB, all numbers are positive and the scaled sides at most `max_side`.
void check_format(std::string_view who, const VideoFormat& format, int64_t max_side);

// Error(usage) unless a frame of `size` bytes has this format.
void check_frame(std::string_view who, const VideoFormat& format, size_t size);

// Row `y` of a frame with `channels` bytes per pixel, each pixel `scale` times.
void scale_row(const uint8_t* frame, const VideoFormat& format, int64_t y, size_t channels, std::span<uint8_t> out);

}  // namespace convssm::io
