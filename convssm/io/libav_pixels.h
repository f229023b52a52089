// Decoded frames of libav as bytes, for the readers of videos and JPEG pictures. Inside io/ only.
#pragma once

#include <cstdint>

#include "convssm/io/libav.h"

namespace convssm::io::libav {

inline constexpr int64_t max_pixels = 1 << 26;  // of a frame

// A decoder that refuses what is damaged, where one for viewers would fill it with what is near by. Null if libav has none.
// `parameters` may be null.
Codec strict_decoder(AVCodecID codec, const AVCodecParameters* parameters);

// Frames to bytes without a change of size: grey where they have no colours, otherwise RGB; what says how much shines through is
// dropped.
class PixelConverter {
 public:
  // Of what a frame becomes: 1 or 3.
  static int channels(const AVFrame& frame);

  // To out, u8 [height, width, channels]. False if libav cannot convert such pixels.
  bool convert(const AVFrame& frame, uint8_t* out);

 private:
  bool begin(const AVFrame& frame);

  libav::Frame bytes_;
  Scaler converter_;
  int width_ = 0, height_ = 0, format_ = -1;
};

}  // namespace convssm::io::libav
