// Decoders fill damaged parts with what is near by: that is for viewers, here it is an error.
#include "convssm/io/mp4_decode.h"

namespace convssm::io::libav {

Mp4Decoder::Mp4Decoder(std::shared_ptr<const Source> source)
    : file_((silence(), std::move(source))),
      decoder_(file_.make_decoder()),
      packet_(av_packet_alloc()),
      frame_(av_frame_alloc()) {
  require_memory(packet_.get()), require_memory(frame_.get());
}

const AVFrame* Mp4Decoder::next() {
  while (true) {
    const int code = avcodec_receive_frame(decoder_.get(), frame_.get());
    if (code == 0) return check(*frame_), frame_.get();
    if (code == AVERROR_EOF) return nullptr;
    if (code != AVERROR(EAGAIN)) file_.check(code);
    ended_ = ended_ || !file_.next(packet_.get());
    file_.check(avcodec_send_packet(decoder_.get(), ended_ ? nullptr : packet_.get()));
  }
}

void Mp4Decoder::check(const AVFrame& frame) {
  if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0) {
    file_.fail("frame {} is damaged", given_);
  }
  if (format_ < 0) width_ = frame.width, height_ = frame.height, format_ = frame.format;
  if (frame.width != width_ || frame.height != height_ || frame.format != format_) {
    file_.fail("frame {} is {} x {}, the first is {} x {}; videos of several sizes are not supported", given_,
               frame.height, frame.width, height_, width_);
  }
  ++given_;
}

void Mp4Decoder::seek(int64_t time) {
  file_.seek(time);
  avcodec_flush_buffers(decoder_.get());
  ended_ = false;
}

void Mp4Decoder::convert(const AVFrame& frame, uint8_t* out) {
  if (!converter_.convert(frame, out)) file_.fail("its pixels cannot be converted to RGB");
}

}  // namespace convssm::io::libav
