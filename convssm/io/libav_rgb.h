// Decoded frames of libav as RGB bytes, for the readers of MP4 and JPEG files. Inside io/ only.
#pragma once

#include <cstdint>

#include "convssm/io/libav.h"

namespace convssm::io::libav {

inline constexpr int64_t max_pixels = 1 << 26;  // of a frame

// A decoder that refuses what is damaged, where one for viewers would fill it with what is near by. Null if libav has none.
// `parameters` may be null.
Codec strict_decoder(AVCodecID codec, const AVCodecParameters* parameters);

class RgbConverter {
 public:
  // To out, u8 [height, width, 3]. False if libav cannot convert such pixels.
  bool convert(const AVFrame& frame, uint8_t* out);

 private:
  bool begin(const AVFrame& frame);

  libav::Frame rgb_;
  Scaler converter_;
  int width_ = 0, height_ = 0, format_ = -1;
};

}  // namespace convssm::io::libav
