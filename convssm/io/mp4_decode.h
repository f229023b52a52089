// The frames of an MP4 file one after the other, from its start or from a key frame. Inside io/ only.
#pragma once

#include <memory>

#include "convssm/io/mp4_demux.h"

namespace convssm::io::libav {

class Mp4Decoder {
 public:
  explicit Mp4Decoder(std::shared_ptr<const Source> source);

  // The next frame in the order in which frames are shown, valid until the next call; null at the end. FormatError for a
  // frame that is damaged or of another size than the first.
  const AVFrame* next();

  // The next frame is one that is shown after a key frame decoded at `time` or before.
  void seek(int64_t time);

  // As bytes [height, width, 3].
  void convert(const AVFrame& frame, uint8_t* out);

  const Demuxer& file() const { return file_; }

 private:
  void check(const AVFrame& frame);

  Demuxer file_;
  Codec decoder_;
  Packet packet_;
  Frame frame_;
  RgbConverter converter_;
  bool ended_ = false;                        // no more packets
  int width_ = 0, height_ = 0, format_ = -1;  // of the first frame
  int64_t given_ = 0;
};

}  // namespace convssm::io::libav
