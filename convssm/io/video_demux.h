// The packets of the video of a file, for its readers. Inside io/ only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "convssm/io/libav_pixels.h"
#include "convssm/io/source.h"
#include "convssm/io/video_container.h"

namespace convssm::io::libav {

class Demuxer {
 public:
  // FormatError if it is not a file with a video.
  explicit Demuxer(std::shared_ptr<const Source> source);
  ~Demuxer() { avformat_close_input(&format_); }
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVCodecParameters& parameters() const { return *format_->streams[track_]->codecpar; }
  const std::string& name() const { return source_->name(); }

  // The display matrix of the video, 9 numbers, or null.
  const int32_t* display_matrix() const;

  // The next packet of the video; false at the end. FormatError for one that is damaged, and for an end before all packets
  // came that the file lists.
  bool next(AVPacket* packet);

  // Goes to the last key frame whose seek_time is `time` or before.
  void seek(int64_t time);
  int64_t seek_time(const AVPacket& packet) const { return container_.seeks_by_shown ? packet.pts : packet.dts; }

  Codec make_decoder() const;

  void check(int code) const {
    stream_.rethrow();
    if (code < 0) fail("not a valid {} file: {}", container_.name, error_text(code));
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    source_->fail(position_, text, std::forward<Args>(args)...);
  }

 private:
  void look_into_streams();
  void choose_track();
  int read(uint8_t* bytes, int size);
  int64_t seek_bytes(int64_t offset, int whence);

  std::shared_ptr<const Source> source_;
  const VideoContainer& container_;
  uint64_t position_ = 0;
  Stream stream_;
  AVFormatContext* format_ = nullptr;
  int track_ = -1;
  int64_t packets_ = 0;     // given since the start
  bool from_start_ = true;  // nobody went elsewhere
};

}  // namespace convssm::io::libav
