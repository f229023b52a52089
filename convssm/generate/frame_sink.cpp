// Frames are written as they come; nothing is at the path before close(), so a file that is there is whole.
#include "convssm/generate/frame_sink.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/log.h"
#include "convssm/data/picture.h"
#include "convssm/generate/grid_sink.h"
#include "convssm/io/npy.h"
#include "convssm/io/npy_stream.h"
#include "convssm/io/video_writer.h"

namespace convssm::generate {
namespace {

io::DType stored_type(const data::FrameFormat& format) { return format.is_8_bit() ? io::DType::u8 : io::DType::f32; }

std::span<const std::byte> bytes_of(const at::Tensor& x) {
  return {static_cast<const std::byte*>(x.data_ptr()), x.nbytes()};
}

std::vector<int64_t> array_shape(const data::FrameFormat& format, const SinkOptions& o) {
  if (o.layout == "THWC") return {o.frames, format.height, format.width, format.depth()};
  if (o.layout == "TCHW") return {o.frames, format.depth(), format.height, format.width};
  if (o.layout == "THW" && format.depth() == 1) return {o.frames, format.height, format.width};
  fail(ErrorKind::usage,
       "[open_sink] frames of {} cannot be written as {}; expected THWC, TCHW, or THW for one channel",
       format.size_text(), o.layout);
}

// Pixels that nobody knows are NaN, or the middle of the range in bytes.
at::Tensor with_gaps(const at::Tensor& frame, const at::Tensor& measured, bool as_bytes) {
  at::Tensor shown = frame.cpu();
  if (measured.defined()) {
    shown = shown.masked_fill(measured.logical_not(), std::numeric_limits<double>::quiet_NaN());
  }
  return as_bytes ? at::nan_to_num(shown, 0.0) : shown;
}

class NpySink : public FrameSink {
 public:
  NpySink(const std::string& path, const data::FrameFormat& format, const SinkOptions& o)
      : format_(format),
        measured_(o.field.measured),
        channels_first_(o.layout == "TCHW"),
        stream_(path, stored_type(format), array_shape(format, o)) {}
  void write(const at::Tensor& frame) override {
    const at::Tensor values = data::in_units(with_gaps(frame, measured_, format_.is_8_bit()), format_);  // [H,W,C]
    stream_.write(bytes_of(channels_first_ ? values.permute({2, 0, 1}).contiguous() : values));
    ++frames_;
  }
  void close() override { stream_.close_early(frames_); }
  int64_t frames() const { return frames_; }

 private:
  data::FrameFormat format_;
  at::Tensor measured_;
  bool channels_first_;
  io::NpyStream stream_;
  int64_t frames_ = 0;
};

// The size of an array must be known before it goes into the archive: the frames wait in a file beside it.
class NpzSink : public FrameSink {
 public:
  NpzSink(const std::string& path, const data::FrameFormat& format, const SinkOptions& o)
      : path_(path), waiting_(path + ".frames.npy"), sink_(waiting_, format, o) {}
  ~NpzSink() override {
    std::error_code ignored;
    std::filesystem::remove(waiting_, ignored);
  }
  void write(const at::Tensor& frame) override { sink_.write(frame); }
  void close() override {
    sink_.close();
    const io::ArrayInfo info = io::read_npy_info(waiting_);
    io::NpzStream archive(path_);
    archive.begin("video", info.dtype, info.shape);
    constexpr int64_t block = 64;
    for (int64_t k = 0; k < sink_.frames(); k += block) {
      const io::Array rows = io::read_npy_rows(waiting_, k, std::min(block, sink_.frames() - k));
      archive.write(rows.bytes());
    }
    archive.end();
    archive.close();
  }

 private:
  std::string path_, waiting_;
  NpySink sink_;
};

// For people: grey or RGB.
class PictureSink : public FrameSink {
 public:
  PictureSink(const std::string& path, const data::FrameFormat& format, const SinkOptions& o)
      : measured_(o.field.measured),
        channels_(format.depth() == 3 && format.channels[0].name.empty() ? 3 : 1),
        video_(io::open_video(path, {o.frames, format.width, format.height, channels_, o.fps, o.scale})) {
    if (format.depth() != channels_) {
      log_warning("{} shows the first of {} channels; .npy, .npz, .nc and .zarr hold all", path, format.depth());
    }
  }
  void write(const at::Tensor& frame) override {
    video_->write(data::picture(with_gaps(frame, measured_, true).slice(0, 0, channels_)).pixels);
  }
  void close() override { video_->close_early(); }

 private:
  at::Tensor measured_;
  int64_t channels_;  // that are shown: three variables are no colours
  std::unique_ptr<io::VideoWriter> video_;
};

}  // namespace

std::unique_ptr<FrameSink> open_sink(const std::string& path, const data::FrameFormat& format, const SinkOptions& o) {
  const std::string ending = file_ending(path);
  if (ending == ".npy") return std::make_unique<NpySink>(path, format, o);
  if (ending == ".npz") return std::make_unique<NpzSink>(path, format, o);
  const std::vector<std::string> pictures = io::video_endings();
  if (std::ranges::find(pictures, ending) != pictures.end()) return std::make_unique<PictureSink>(path, format, o);
  if (data::is_field_name(path)) return std::move(open_grid_sinks(path, format, o, 1)[0]);
  fail(ErrorKind::usage, "[open_sink] the name of a result ends with .npy, .npz, .nc, .zarr, {}; got '{}'",
       fmt::join(pictures, ", "), path);
}

std::string array_text(const std::string& path, const data::FrameFormat& format, const SinkOptions& o) {
  const std::string ending = file_ending(path);
  if (ending != ".npy" && ending != ".npz") return "";
  std::vector<char> letters(o.layout.begin(), o.layout.end());
  return fmt::format("{} [{}]", io::dtype_name(stored_type(format)), fmt::join(letters, ","));
}

std::string numbered_path(const std::string& path, int64_t number) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()))
      .string();
}

}  // namespace convssm::generate
