// Decoders fill damaged parts with what is near by: that is for viewers, here it is an error. How phones were held stands in the display
// matrix, which is applied to the converted bytes.
#include "convssm/io/video_decode.h"

#include <algorithm>

namespace convssm::io::libav {

VideoDecoder::VideoDecoder(std::shared_ptr<const Source> source)
    : file_((silence(), std::move(source))),
      decoder_(file_.make_decoder()),
      packet_(av_packet_alloc()),
      frame_(av_frame_alloc()) {
  require_memory(packet_.get()), require_memory(frame_.get());
  read_display_matrix();
}

// The matrix takes column p and row q to column a p + c q and row b p + d q, but for where the picture then lies.
void VideoDecoder::read_display_matrix() {
  const int32_t* matrix = file_.display_matrix();
  if (matrix == nullptr) return;
  const int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  if (b == 0 && c == 0 && a != 0 && d != 0) {
    turn_ = {false, a < 0, d < 0};
  } else if (a == 0 && d == 0 && b != 0 && c != 0) {
    turn_ = {true, c < 0, b < 0};
  } else {
    file_.fail("the video is shown turned by other than quarter turns; convert it: ffmpeg -i in.mp4 out.mp4");
  }
}

const AVFrame* VideoDecoder::next() {
  while (true) {
    const int code = avcodec_receive_frame(decoder_.get(), frame_.get());
    if (code == 0) return check(*frame_), frame_.get();
    if (code == AVERROR_EOF) return nullptr;
    if (code != AVERROR(EAGAIN)) file_.check(code);
    ended_ = ended_ || !file_.next(packet_.get());
    file_.check(avcodec_send_packet(decoder_.get(), ended_ ? nullptr : packet_.get()));
  }
}

void VideoDecoder::check(const AVFrame& frame) {
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

void VideoDecoder::seek(int64_t time) {
  file_.seek(time);
  avcodec_flush_buffers(decoder_.get());
  ended_ = false;
}

FrameSize VideoDecoder::size(const AVFrame& frame) const {
  const int64_t channels = PixelConverter::channels(frame);
  if (turn_.transpose) return {frame.width, frame.height, channels};
  return {frame.height, frame.width, channels};
}

void VideoDecoder::convert(const AVFrame& frame, uint8_t* out) {
  const FrameSize size = this->size(frame);
  if (turn_.changes()) lying_.resize(size.bytes());
  if (!converter_.convert(frame, turn_.changes() ? lying_.data() : out)) file_.fail("its pixels cannot be converted");
  if (!turn_.changes()) return;
  const ptrdiff_t C = size.channels, line = frame.width * C;
  const ptrdiff_t step_y = turn_.transpose ? C : line, step_x = turn_.transpose ? line : C;
  for (int64_t y = 0; y < size.height; ++y) {
    const uint8_t* row = lying_.data() + (turn_.reverse_rows ? size.height - 1 - y : y) * step_y;
    for (int64_t x = 0; x < size.width; ++x, out += C) {
      std::copy_n(row + (turn_.reverse_columns ? size.width - 1 - x : x) * step_x, C, out);
    }
  }
}

}  // namespace convssm::io::libav
