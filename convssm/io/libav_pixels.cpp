// libav writes a line in blocks and may go beyond its end, so it gets a frame with room for that, from which lines are copied.
#include "convssm/io/libav_pixels.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

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

int PixelConverter::channels(const AVFrame& frame) {
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool grey = format != nullptr && format->nb_components <= 2 && (format->flags & AV_PIX_FMT_FLAG_PAL) == 0;
  return grey ? 1 : 3;
}

bool PixelConverter::begin(const AVFrame& frame) {
  width_ = frame.width, height_ = frame.height, format_ = frame.format;
  bytes_.reset(av_frame_alloc());
  require_memory(bytes_.get());
  const AVPixelFormat to = channels(frame) == 1 ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_RGB24;
  bytes_->format = to, bytes_->width = width_, bytes_->height = height_;
  if (av_frame_get_buffer(bytes_.get(), 0) < 0) require_memory(nullptr);
  const int colours = frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : static_cast<int>(frame.colorspace);
  converter_ = make_converter(width_, height_, static_cast<AVPixelFormat>(format_), to, colours,
                              frame.color_range == AVCOL_RANGE_JPEG);
  return converter_ != nullptr;
}

bool PixelConverter::convert(const AVFrame& frame, uint8_t* out) {
  const bool same = frame.width == width_ && frame.height == height_ && frame.format == format_;
  if (!same && !begin(frame)) return false;
  const AVFrame* from = &frame;
  if (frame.format != AV_PIX_FMT_GRAY8) {
    sws_scale(converter_.get(), frame.data, frame.linesize, 0, height_, bytes_->data, bytes_->linesize);
    from = bytes_.get();
  }
  const int line = width_ * channels(frame);
  for (int y = 0; y < height_; ++y) out = std::copy_n(from->data[0] + ptrdiff_t{y} * from->linesize[0], line, out);
  return true;
}

}  // namespace convssm::io::libav
