// The frames of a video one after the other, from its start or from a key frame. Inside io/ only.
#pragma once

#include <memory>
#include <vector>

#include "convssm/io/video_demux.h"

namespace convssm::io::libav {

struct FrameSize {
  int64_t height, width, channels;
  bool operator==(const FrameSize&) const = default;
  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

// What a display matrix does: rows become columns, then columns or rows are reversed.
struct Turn {
  bool transpose = false, reverse_columns = false, reverse_rows = false;
  bool changes() const { return transpose || reverse_columns || reverse_rows; }
};

class VideoDecoder {
 public:
  explicit VideoDecoder(std::shared_ptr<const Source> source);

  // The next frame in the order in which frames are shown, valid until the next call; null at the end. FormatError for a
  // frame that is damaged or of another size than the first.
  const AVFrame* next();

  // The next frame is one that is shown after a key frame decoded at `time` or before.
  void seek(int64_t time);

  // What convert() makes of a frame: upright, grey or RGB.
  FrameSize size(const AVFrame& frame) const;

  // As bytes [height, width, channels].
  void convert(const AVFrame& frame, uint8_t* out);

  const Demuxer& file() const { return file_; }

 private:
  void check(const AVFrame& frame);
  void read_display_matrix();

  Demuxer file_;
  Codec decoder_;
  Packet packet_;
  Frame frame_;
  PixelConverter converter_;
  Turn turn_;
  std::vector<uint8_t> lying_;                // the frame before it is turned
  bool ended_ = false;                        // no more packets
  int width_ = 0, height_ = 0, format_ = -1;  // of the first frame
  int64_t given_ = 0;
};

}  // namespace convssm::io::libav
