// Checked once for all writers, so that .gif and .mp4 refuse the same frames with the same words. The limits come as
// arguments: each format has its own.
#include "convssm/io/video_format.h"

#include <cmath>
#include <cstring>

#include "convssm/base/error.h"

namespace convssm::io {

void check_format(std::string_view who, const VideoFormat& format, int64_t max_side) {
  if (format.channels != 1 && format.channels != 3) {
    fail(ErrorKind::usage, "[{}] frames must have 1 (grey) or 3 (RGB) channels, got {}; write .npy for others", who,
         format.channels);
  }
  if (format.scale < 1 || format.scale > max_side) {
    fail(ErrorKind::usage, "[{}] scale must be 1 to {}, got {}", who, max_side, format.scale);
  }
  const auto inside = [&](int64_t side) { return side > 0 && side <= max_side / format.scale; };
  if (!inside(format.width) || !inside(format.height)) {
    fail(ErrorKind::usage, "[{}] frames must be 1 to {} pixels high and wide after scaling, got {} x {} times {}", who,
         max_side, format.height, format.width, format.scale);
  }
  if (!std::isfinite(format.fps) || format.fps < 0.01 || format.fps > 1000) {
    fail(ErrorKind::usage, "[{}] fps must be 0.01 to 1000, got {}", who, format.fps);
  }
}

void check_frame(std::string_view who, const VideoFormat& format, size_t size) {
  const auto expected = static_cast<size_t>(format.width * format.height * format.channels);
  if (size == expected) return;
  fail(ErrorKind::usage, "[{}] a frame of [{}, {}, {}] has {} bytes, got {}", who, format.height, format.width,
       format.channels, expected, size);
}

void scale_row(const uint8_t* frame, const VideoFormat& format, int64_t y, size_t channels, std::span<uint8_t> out) {
  const uint8_t* in = frame + static_cast<size_t>(y * format.width) * channels;
  uint8_t* to = out.data();
  for (int64_t x = 0; x < format.width; ++x, in += channels) {
    for (int64_t i = 0; i < format.scale; ++i, to += channels) std::memcpy(to, in, channels);
  }
}

}  // namespace convssm::io
