// The packets of the video of an MP4 file, for its readers. Inside io/ only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "convssm/io/libav_rgb.h"
#include "convssm/io/source.h"

namespace convssm::io::libav {

class Demuxer {
 public:
  // FormatError if it is not an MP4 file with a video.
  explicit Demuxer(std::shared_ptr<const Source> source);
  ~Demuxer() { avformat_close_input(&format_); }
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVCodecParameters& parameters() const { return *format_->streams[track_]->codecpar; }
  const std::string& name() const { return source_->name(); }

  // The next packet of the video; false at the end. FormatError for one that is damaged, and for an end before all packets
  // came that the file lists.
  bool next(AVPacket* packet);

  // Goes to a key frame whose packet is decoded at `time` or before.
  void seek(int64_t time);

  Codec make_decoder() const;

  void check(int code) const {
    stream_.rethrow();
    if (code < 0) fail("not a valid MP4 file: {}", error_text(code));
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    source_->fail(position_, text, std::forward<Args>(args)...);
  }

 private:
  int read(uint8_t* bytes, int size);
  int64_t seek_bytes(int64_t offset, int whence);

  std::shared_ptr<const Source> source_;
  uint64_t position_ = 0;
  Stream stream_;
  AVFormatContext* format_ = nullptr;
  int track_ = -1;
  int64_t packets_ = 0;     // given since the start
  bool from_start_ = true;  // nobody went elsewhere
};

}  // namespace convssm::io::libav
