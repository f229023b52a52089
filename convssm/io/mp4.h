// MP4, Matroska (.mkv), AVI and WebM files, written: H.264 (MPEG-4 where libx264 is missing), AVI with MPEG-4, WebM with VP9; 4:2:0
// colour. Lossy: for looking at, not for measuring. They are
// read as all videos are (video_read.h).
//   Mp4Writer mp4("future.mp4", {.width = 64, .height = 64, .fps = 10, .scale = 4});   mp4.write(frame);  mp4.close();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

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

}  // namespace convssm::io
