// Videos in MP4, QuickTime, AVI, Matroska and WebM files, of any codec that libav decodes. The frames are those of the first
// track that is marked as the default, or of the first; pictures that are attached to a file are none. They are as they are stored:
// none is doubled or left out for an even rate, the two fields of an interlaced one are not taken apart. They are bytes, grey
// where the video has no colours and otherwise RGB, upright as their display matrix says.
//   Array all = read_video("a.mkv");   VideoFrames video(source, *index_video(source));   Array some = video.read(first, count);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// The endings of such files: .mp4, .m4v, .mov, .avi, .mkv, .webm.
bool is_video_ending(std::string_view ending);

// All frames, u8 [T,H,W,1 or 3]. FormatError for what is not a complete video or whose frames are not all of one size.
Array read_video(const std::string& path);
Array read_video(std::shared_ptr<const Source> source);

// Where the frames of a video are: found by looking at all its packets, without decoding them.
struct VideoIndex {
  int64_t height = 0, width = 0, channels = 3;
  std::vector<int64_t> shown = {};  // when each frame is shown, ascending
  std::vector<std::pair<int64_t, int64_t>> keys =
      {};  // frames that need no others: their number, and the time to seek to

  int64_t frames() const { return std::ssize(shown); }
};

// Nothing if the packets of the video do not say when they are shown: then it can only be read whole. FormatError as of
// read_video for what this sees of the file: all but damage inside of frames after the first.
std::optional<VideoIndex> index_video(std::shared_ptr<const Source> source);

// Any frames of a video, equal to those of read_video, decoded from the key frame before them. Going on where the last ones
// ended costs nothing more.
class VideoFrames {
 public:
  VideoFrames(std::shared_ptr<const Source> source, VideoIndex index);
  ~VideoFrames();
  VideoFrames(const VideoFrames&) = delete;
  VideoFrames& operator=(const VideoFrames&) = delete;

  // Frames first .. first+count-1, u8 [count,H,W,C].
  Array read(int64_t first, int64_t count);

 private:
  struct Decoding;
  void restart(int64_t first);
  bool fill(int64_t first, Array& out);

  std::shared_ptr<const Source> source_;
  VideoIndex index_;
  std::unique_ptr<Decoding> decoding_;
};

}  // namespace convssm::io
