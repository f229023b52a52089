// libav reads through our Source, so a file that is cut short gives our errors with a byte offset. It gets no file name
// and one demuxer only: a hostile file cannot make it open others. Frames are collected one by one; the number that the
// container declares is not trusted. Decoders fill damaged parts with what is near by: that is for viewers, here it is an
// error.
#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/libav.h"
#include "convssm/io/mp4.h"

namespace convssm::io {
namespace {

using namespace libav;

constexpr int64_t max_pixels = 1 << 26;  // of a frame

class Demuxer {
 public:
  explicit Demuxer(const Source& source)
      : source_(source),
        stream_(
            false, [this](uint8_t* bytes, int size) { return read(bytes, size); },
            [this](int64_t offset, int whence) { return seek(offset, whence); }) {
    format_ = avformat_alloc_context();
    require_memory(format_);
    format_->pb = stream_.context();
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;
    // Only this format, and no other files: libav would follow play lists to wherever they point.
    const int code = avformat_open_input(&format_, "", av_find_input_format("mp4"), nullptr);
    check(code);  // on failure format_ is gone already
    try {
      check(avformat_find_stream_info(format_, nullptr));
      track_ = av_find_best_stream(format_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
      if (track_ < 0) fail("an MP4 file without a video");
    } catch (...) {
      avformat_close_input(&format_);
      throw;
    }
  }
  ~Demuxer() { avformat_close_input(&format_); }
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVCodecParameters& parameters() const { return *format_->streams[track_]->codecpar; }

  const std::string& name() const { return source_.name(); }

  // The next packet of the video; false at the end.
  bool next(AVPacket* packet) {
    while (true) {
      av_packet_unref(packet);
      const int code = av_read_frame(format_, packet);
      if (code == AVERROR_EOF) return stream_.rethrow(), false;
      check(code);
      if (packet->stream_index != track_) continue;
      if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) fail("a part of the video is damaged");
      return true;
    }
  }

  void check(int code) const {
    stream_.rethrow();
    if (code < 0) fail("not a valid MP4 file: {}", error_text(code));
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    source_.fail(position_, text, std::forward<Args>(args)...);
  }

 private:
  int read(uint8_t* bytes, int size) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(size), source_.size() - position_));
    if (part == 0) return AVERROR_EOF;
    source_.read(position_, std::as_writable_bytes(std::span(bytes, part)));
    position_ += part;
    return static_cast<int>(part);
  }

  int64_t seek(int64_t offset, int whence) {
    const auto size = static_cast<int64_t>(source_.size());
    if ((whence & ~AVSEEK_FORCE) == AVSEEK_SIZE) return size;
    if ((whence & ~AVSEEK_FORCE) != SEEK_SET || offset < 0 || offset > size) return AVERROR(EINVAL);
    position_ = static_cast<uint64_t>(offset);
    return offset;
  }

  const Source& source_;
  uint64_t position_ = 0;
  Stream stream_;
  AVFormatContext* format_ = nullptr;
  int track_ = -1;
};

Codec make_decoder(const Demuxer& file) {
  const AVCodecParameters& parameters = file.parameters();
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) file.fail("no decoder for its video ({})", avcodec_get_name(parameters.codec_id));
  Codec decoder(avcodec_alloc_context3(codec));
  require_memory(decoder.get());
  file.check(avcodec_parameters_to_context(decoder.get(), &parameters));
  decoder->max_pixels = max_pixels;
  decoder->err_recognition |= AV_EF_EXPLODE | AV_EF_BITSTREAM | AV_EF_BUFFER;
  file.check(avcodec_open2(decoder.get(), codec, nullptr));
  return decoder;
}

// Decoded frames as RGB, [H,W,3] each.
class Frames {
 public:
  explicit Frames(const Demuxer& file) : file_(file) {}

  void add(const AVFrame& frame) {
    if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0) {
      file_.fail("frame {} is damaged", frames_.size());
    }
    if (frames_.empty()) begin(frame);
    if (frame.width != width_ || frame.height != height_ || frame.format != format_) {
      file_.fail("frame {} is {} x {}, the first is {} x {}; videos of several sizes are not supported", frames_.size(),
                 frame.height, frame.width, height_, width_);
    }
    require_file_memory(file_.name(), "its frames", (frames_.size() + 1) * frame_bytes());
    frames_.push_back(std::make_unique_for_overwrite<uint8_t[]>(frame_bytes()));
    // libav writes a line in blocks and may go beyond its end, so it gets a frame with room for that.
    sws_scale(converter_.get(), frame.data, frame.linesize, 0, height_, rgb_->data, rgb_->linesize);
    for (int y = 0; y < height_; ++y) {
      const uint8_t* line = rgb_->data[0] + static_cast<ptrdiff_t>(y) * rgb_->linesize[0];
      std::copy_n(line, 3 * width_, frames_.back().get() + static_cast<ptrdiff_t>(y) * 3 * width_);
    }
  }

  // Gives each frame back as it is copied, so that there are never two copies of the whole video.
  Array take() {
    if (frames_.empty()) file_.fail("an MP4 file without any frame");
    Array array(DType::u8, {std::ssize(frames_), height_, width_, 3});
    auto out = array.values<uint8_t>().begin();
    for (auto& frame : frames_) {
      out = std::copy_n(frame.get(), frame_bytes(), out);
      frame.reset();
    }
    return array;
  }

 private:
  size_t frame_bytes() const { return static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3; }

  void begin(const AVFrame& frame) {
    width_ = frame.width, height_ = frame.height, format_ = frame.format;
    rgb_.reset(av_frame_alloc());
    require_memory(rgb_.get());
    rgb_->format = AV_PIX_FMT_RGB24, rgb_->width = width_, rgb_->height = height_;
    file_.check(av_frame_get_buffer(rgb_.get(), 0));
    const int colours = frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : static_cast<int>(frame.colorspace);
    converter_ = make_converter(width_, height_, static_cast<AVPixelFormat>(format_), AV_PIX_FMT_RGB24, colours,
                                frame.color_range == AVCOL_RANGE_JPEG);
    if (!converter_) file_.fail("its pixels cannot be converted to RGB");
  }

  const Demuxer& file_;
  std::vector<std::unique_ptr<uint8_t[]>> frames_;
  libav::Frame rgb_;
  Scaler converter_;
  int width_ = 0, height_ = 0, format_ = -1;
};

}  // namespace

Array read_mp4(const std::string& path) { return read_mp4(open_source(path)); }

Array read_mp4(std::shared_ptr<const Source> source) {
  silence();
  Demuxer file(*source);
  const Codec decoder = make_decoder(file);
  const Packet packet(av_packet_alloc());
  const libav::Frame frame(av_frame_alloc());
  require_memory(packet.get()), require_memory(frame.get());
  Frames frames(file);
  const auto decode = [&](const AVPacket* input) {
    file.check(avcodec_send_packet(decoder.get(), input));
    while (true) {
      const int code = avcodec_receive_frame(decoder.get(), frame.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      file.check(code);
      frames.add(*frame);
    }
  };
  while (file.next(packet.get())) decode(packet.get());
  decode(nullptr);
  return frames.take();
}

}  // namespace convssm::io
