// libav writes a line in blocks and may go beyond its end, so it gets a frame with room for that, from which lines are copied.
#include "convssm/io/libav_rgb.h"

#include <algorithm>

namespace convssm::io::libav {

Codec strict_decoder(AVCodecID id, const AVCodecParameters* parameters) {
  const AVCodec* codec = avcodec_find_decoder(id);
  if (codec == nullptr) return nullptr;
  Codec decoder(avcodec_alloc_context3(codec));
  require_memory(decoder.get());
  if (parameters != nullptr && avcodec_parameters_to_context(decoder.get(), parameters) < 0) return nullptr;
  decoder->max_pixels = max_pixels;
  decoder->err_recognition |= AV_EF_EXPLODE | AV_EF_BITSTREAM | AV_EF_BUFFER;
  if (avcodec_open2(decoder.get(), codec, nullptr) < 0) return nullptr;
  return decoder;
}

bool RgbConverter::begin(const AVFrame& frame) {
  width_ = frame.width, height_ = frame.height, format_ = frame.format;
  rgb_.reset(av_frame_alloc());
  require_memory(rgb_.get());
  rgb_->format = AV_PIX_FMT_RGB24, rgb_->width = width_, rgb_->height = height_;
  if (av_frame_get_buffer(rgb_.get(), 0) < 0) require_memory(nullptr);
  const int colours = frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : static_cast<int>(frame.colorspace);
  converter_ = make_converter(width_, height_, static_cast<AVPixelFormat>(format_), AV_PIX_FMT_RGB24, colours,
                              frame.color_range == AVCOL_RANGE_JPEG);
  return converter_ != nullptr;
}

bool RgbConverter::convert(const AVFrame& frame, uint8_t* out) {
  const bool same = frame.width == width_ && frame.height == height_ && frame.format == format_;
  if (!same && !begin(frame)) return false;
  sws_scale(converter_.get(), frame.data, frame.linesize, 0, height_, rgb_->data, rgb_->linesize);
  for (int y = 0; y < height_; ++y) {
    const uint8_t* line = rgb_->data[0] + static_cast<ptrdiff_t>(y) * rgb_->linesize[0];
    std::copy_n(line, 3 * width_, out + static_cast<ptrdiff_t>(y) * 3 * width_);
  }
  return true;
}

}  // namespace convssm::io::libav
