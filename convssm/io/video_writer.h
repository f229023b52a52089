// One interface for writing a video, whatever the file: the extension of its name decides.
//   auto video = open_video("future.gif", {.frames = 100, .width = 64, .height = 64});
//   for (...) video->write(frame);
//   video->close();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/video_format.h"

namespace convssm::io {

// Nothing is at the path before close(); without it there never is.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // The next frame, u8 [height, width, channels]. Error(usage) after the last one.
  void write(std::span<const uint8_t> frame);

  // Completes the file. Error(usage) unless all frames came.
  void close();

  // Completes the file with the frames that came, at least one.
  void close_early();

 protected:
  explicit VideoWriter(const VideoFormat& format) : format_(format) {}
  virtual void write_frame(std::span<const uint8_t> frame) = 0;
  virtual void close_file() = 0;
  virtual void shorten() {}  // before close_file(): only written_ frames came

  const VideoFormat format_;
  int64_t written_ = 0;

 private:
  bool closed_ = false;
};

// .gif, .mp4, .mkv, .avi, .webm, .png
std::vector<std::string> video_endings();

// To look at, 1 or 3 channels. .png: up to 20 frames, evenly spaced in time, side by side. All but .png and the encoders of
// videos need the memory of a frame. Error(usage) for other extensions.
std::unique_ptr<VideoWriter> open_video(const std::string& path, const VideoFormat& format);

}  // namespace convssm::io
