// A table of extensions, each with the class that writes it. What all have in common, the checks and the count of frames,
// is in VideoWriter; a kind adds a frame and closes the file. The strip of a .png chooses its frames by their number
// beforehand, so it holds one picture and not the video.
#include "convssm/io/video_writer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/array.h"
#include "convssm/io/gif.h"
#include "convssm/io/mp4.h"
#include "convssm/io/png.h"

namespace convssm::io {
namespace {

std::vector<int64_t> shape_of(const VideoFormat& format) {
  return {format.frames, format.height, format.width, format.channels};
}

// Of all frames.
template <typename Writer>
class EncodedVideo : public VideoWriter {
 public:
  EncodedVideo(const std::string& path, const VideoFormat& format) : VideoWriter(format), writer_(path, format) {}

 private:
  void write_frame(std::span<const uint8_t> frame) override { writer_.write(frame); }
  void close_file() override { writer_.close(); }
  Writer writer_;
};

// Frames side by side with white lines between them; fewer where 20 would be too wide for a picture.
class Strip : public VideoWriter {
 public:
  Strip(const std::string& path, const VideoFormat& format) : VideoWriter(format), path_(path) {
    check_format("open_video", format, max_side);
    const int64_t width = format.width * format.scale;
    shown_ = std::min({max_shown, format.frames, (max_side + separator) / (width + separator)});
    image_.width = shown_ * (width + separator) - separator;
    image_.height = format.height * format.scale;
    image_.channels = format.channels;
    image_.pixels.assign(static_cast<size_t>(image_.width * image_.height * image_.channels), 255);
  }

 private:
  static constexpr int64_t max_side = 1 << 15;
  static constexpr int64_t max_shown = 20;
  static constexpr int64_t separator = 2;

  // The number of the frame at this place: the first, the last and evenly between.
  int64_t frame_at(int64_t place) const {
    if (shown_ == 1) return 0;
    return (place * (format_.frames - 1) + (shown_ - 1) / 2) / (shown_ - 1);
  }

  void write_frame(std::span<const uint8_t> frame) override {
    if (next_ == shown_ || frame_at(next_) != written_) return;
    const auto channels = static_cast<size_t>(format_.channels);
    const auto row_size = static_cast<size_t>(format_.width * format_.scale) * channels;
    const auto left = static_cast<size_t>(next_ * (format_.width * format_.scale + separator)) * channels;
    for (int64_t y = 0; y < image_.height; ++y) {
      const size_t row = static_cast<size_t>(y * image_.width) * channels + left;
      scale_row(frame.data(), format_, y / format_.scale, channels, std::span(image_.pixels).subspan(row, row_size));
    }
    ++next_;
  }

  void close_file() override { write_png(path_, image_); }

  // Drops the places that stayed empty.
  void shorten() override {
    const int64_t width = next_ * (format_.width * format_.scale + separator) - separator;
    Image narrow{width, image_.height, image_.channels, {}};
    for (int64_t y = 0; y < image_.height; ++y) {
      const auto row = image_.pixels.begin() + y * image_.width * image_.channels;
      narrow.pixels.insert(narrow.pixels.end(), row, row + width * image_.channels);
    }
    image_ = std::move(narrow);
  }

  std::string path_;
  Image image_;
  int64_t shown_ = 0;
  int64_t next_ = 0;  // place
};

template <typename Writer>
std::unique_ptr<VideoWriter> make(const std::string& path, const VideoFormat& format) {
  return std::make_unique<Writer>(path, format);
}

struct Kind {
  const char* extension;
  std::unique_ptr<VideoWriter> (*open)(const std::string&, const VideoFormat&);
};

constexpr Kind kinds[] = {{".gif", make<EncodedVideo<GifWriter>>},  {".mp4", make<EncodedVideo<Mp4Writer>>},
                          {".mkv", make<EncodedVideo<Mp4Writer>>},  {".avi", make<EncodedVideo<Mp4Writer>>},
                          {".webm", make<EncodedVideo<Mp4Writer>>}, {".png", make<Strip>}};

const Kind& kind_of(const std::string& path) {
  const std::string extension = file_ending(path);
  for (const Kind& kind : kinds) {
    if (extension == kind.extension) return kind;
  }
  fail(ErrorKind::usage, "[open_video] the name of a video ends with {}; got '{}'", fmt::join(video_endings(), ", "),
       path);
}

}  // namespace

void VideoWriter::write(std::span<const uint8_t> frame) {
  if (closed_) fail(ErrorKind::usage, "[VideoWriter] write() after close()");
  check_frame("VideoWriter", format_, frame.size());
  if (written_ == format_.frames) fail(ErrorKind::usage, "[VideoWriter] more than {} frames", format_.frames);
  write_frame(frame);
  ++written_;
}

void VideoWriter::close() {
  if (closed_) fail(ErrorKind::usage, "[VideoWriter] close() after close()");
  if (written_ != format_.frames) {
    fail(ErrorKind::usage, "[VideoWriter] expected {} frames, got {}", format_.frames, written_);
  }
  close_file();
  closed_ = true;
}

void VideoWriter::close_early() {
  if (closed_ || written_ == format_.frames) return close();
  if (written_ == 0) fail(ErrorKind::usage, "[VideoWriter] a video needs at least one frame");
  shorten();
  close_file();
  closed_ = true;
}

std::vector<std::string> video_endings() {
  std::vector<std::string> all;
  for (const Kind& kind : kinds) all.emplace_back(kind.extension);
  return all;
}

std::unique_ptr<VideoWriter> open_video(const std::string& path, const VideoFormat& format) {
  const Kind& kind = kind_of(path);
  if (format.frames < 1 || format.width < 1 || format.height < 1 || format.channels < 1 ||
      !checked_byte_count(shape_of(format), 1)) {
    fail(ErrorKind::usage, "[open_video] a video [T,H,W,C] must not be empty, got {}", shape_text(shape_of(format)));
  }
  return kind.open(path, format);
}

}  // namespace convssm::io
