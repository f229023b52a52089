// MP4 files: H.264 (MPEG-4 where libx264 is missing), 4:2:0 colour. Lossy: for looking at, not for measuring.
//   Mp4Writer mp4("future.mp4", {.width = 64, .height = 64, .fps = 10, .scale = 4});   mp4.write(frame);  mp4.close();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"
#include "convssm/io/video_format.h"

namespace convssm::io {

class Mp4Writer {
 public:
  // Nothing is at `path` before close(). Sides that are odd after scaling get one more line, equal to their last.
  Mp4Writer(const std::string& path, const VideoFormat& format);
  ~Mp4Writer();  // without close(): as if there had never been a file
  Mp4Writer(const Mp4Writer&) = delete;
  Mp4Writer& operator=(const Mp4Writer&) = delete;

  // The next frame, u8 [height, width, channels]. The encoder keeps some tens of frames at most.
  void write(std::span<const uint8_t> frame);

  // Completes the file. Error(usage) if there are no frames.
  void close();

 private:
  struct Encoder;
  std::unique_ptr<Encoder> encoder_;
};

// All frames of the first video stream, u8 [T,H,W,3]. FormatError for what is not a complete MP4 file or whose frames
// are not all of one size.
Array read_mp4(const std::string& path);
Array read_mp4(std::shared_ptr<const Source> source);

// Where the frames of a video are: found by looking at all its packets, without decoding them.
struct Mp4Index {
  int64_t height = 0, width = 0;
  std::vector<int64_t> shown = {};  // when each frame is shown, ascending
  std::vector<std::pair<int64_t, int64_t>> keys =
      {};  // frames that need no others: their number, when they are decoded

  int64_t frames() const { return std::ssize(shown); }
};

// Nothing if the packets of the video do not say when they are shown: then it can only be read whole. FormatError as of
// read_mp4 for what this sees of the file: all but damage inside of frames after the first.
std::optional<Mp4Index> index_mp4(std::shared_ptr<const Source> source);

// Any frames of a video, equal to those of read_mp4, decoded from the key frame before them. Going on where the last ones
// ended costs nothing more.
//   Mp4Frames video(source, *index_mp4(source));   Array some = video.read(first, count);
class Mp4Frames {
 public:
  Mp4Frames(std::shared_ptr<const Source> source, Mp4Index index);
  ~Mp4Frames();
  Mp4Frames(const Mp4Frames&) = delete;
  Mp4Frames& operator=(const Mp4Frames&) = delete;

  // Frames first .. first+count-1, u8 [count,H,W,3].
  Array read(int64_t first, int64_t count);

 private:
  struct Decoding;
  void restart(int64_t first);
  bool fill(int64_t first, Array& out);

  std::shared_ptr<const Source> source_;
  Mp4Index index_;
  std::unique_ptr<Decoding> decoding_;
};

}  // namespace convssm::io
