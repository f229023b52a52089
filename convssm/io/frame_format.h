// What the writers of video files need to know of the frames, and the checks that they share. A frame is
// u8 [height, width, channels]; channels 1 is grey, 3 is RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convssm::io {

struct FrameFormat {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 3;
  double fps = 10;
  int64_t scale = 1;  // each pixel becomes scale x scale pixels
};

// Bytes of a frame.
size_t frame_size(const FrameFormat& format);

// Error(usage) unless the frames are grey or RGB, all numbers are positive and the scaled sides at most `max_side`.
void check_format(std::string_view who, const FrameFormat& format, int64_t max_side);

// Error(usage) unless a frame of `size` bytes has this format.
void check_frame(std::string_view who, const FrameFormat& format, size_t size);

// Row `y` of a frame with `channels` bytes per pixel, each pixel `scale` times.
void scale_row(const uint8_t* frame, const FrameFormat& format, int64_t y, size_t channels, std::span<uint8_t> out);

}  // namespace convssm::io
