// Animated GIF files: small videos that every viewer and browser plays. Grey frames are exact; RGB frames with more
// than 256 colours get the 256 that fit them best, each frame its own.
//   GifWriter gif("future.gif", {.width = 64, .height = 64, .channels = 1, .fps = 10, .scale = 4});
//   gif.write(frame);  gif.close();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "convssm/base/atomic_file.h"
#include "convssm/io/array.h"
#include "convssm/io/source.h"
#include "convssm/io/video_format.h"

namespace convssm::io {

class GifWriter {
 public:
  // Nothing is at `path` before close(). GIF counts time in 1/100 s and viewers slow down below 2/100: frames last at
  // least that long, and on average 1 / fps where it is longer.
  GifWriter(const std::string& path, const VideoFormat& format, bool loop = true);
  // The same bytes at the end of `out`, which must outlive it; whole after close().
  GifWriter(std::string* out, const VideoFormat& format, bool loop = true);
  ~GifWriter();  // without close(): as if there had never been a file
  GifWriter(const GifWriter&) = delete;
  GifWriter& operator=(const GifWriter&) = delete;

  // The next frame, u8 [height, width, channels]. Memory is that of one frame.
  void write(std::span<const uint8_t> frame);

  // Completes the file. Error(usage) if there are no frames.
  void close();

 private:
  struct Encoder;
  std::unique_ptr<AtomicFile> file_;  // if there is one
  std::unique_ptr<Encoder> encoder_;  // writes into it: ends before it
};

// All frames as a viewer shows them, u8 [T,H,W,C]; C is 1 if all palettes in use are grey, else 3. What no frame has
// drawn is black. FormatError for files that are not valid GIF, and for animations that unpack to more than 256 MB and
// 4096 times their size.
Array read_gif(const std::string& path);
Array read_gif(std::shared_ptr<const Source> source);

}  // namespace convssm::io
