// A class for each kind of file. Numbers stay in their stored type where the kind has it; 16-bit floats become f32 elsewhere.
#include "convssm/data/frame_target.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/log.h"
#include "convssm/base/staged_folder.h"
#include "convssm/data/field_writer.h"
#include "convssm/data/numbers.h"
#include "convssm/io/hdf5_write.h"
#include "convssm/io/npy.h"
#include "convssm/io/npy_stream.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "convssm/io/tiff_write.h"
#include "convssm/io/video_writer.h"

namespace convssm::data {
namespace {

// Of three channels without names, or one.
bool are_pictures(const RecordingInfo& info) {
  return info.named_channels.empty() && (info.channels == 1 || info.channels == 3);
}

std::vector<int64_t> stored_shape(const RecordingInfo& info, int64_t frames) {
  return are_pictures(info) ? std::vector{frames, info.height, info.width, info.channels}
                            : std::vector{frames, info.channels, info.height, info.width};
}

io::Array as_stored(const RecordingInfo& info, const io::Array& frames) {
  return are_pictures(info) ? with_channels_last(frames) : frames;
}

bool is_half(io::DType dtype) { return dtype == io::DType::f16 || dtype == io::DType::bf16; }
io::DType without_halves(io::DType dtype) { return is_half(dtype) ? io::DType::f32 : dtype; }

io::Array without_halves(const io::Array& frames) {
  if (!is_half(frames.dtype())) return frames;
  io::Array wide(io::DType::f32, frames.shape());
  with_numbers(frames, [&](auto elements) {
    std::ranges::transform(elements, wide.values<float>().data(),
                           [](const auto& x) { return static_cast<float>(number(x)); });
  });
  return wide;
}

// Actions of the frames as they are stored; none where they are maps, which only grid files hold.
std::optional<io::Array> actions_of(Recording& recording, const TargetOptions& o) {
  const RecordingInfo& info = recording.info();
  if (info.action_maps > 0)
    log_warning("{}: what is known in advance is not written, it follows from the times", o.path);
  if (!info.has_actions || info.action_maps > 0) return std::nullopt;
  return io::to_array(recording.read_actions(o.clip, o.first, o.frames));
}

class NpyTarget : public FrameTarget {
 public:
  NpyTarget(const RecordingInfo& info, const TargetOptions& o)
      : info_(info), stream_(o.path, info.dtype, stored_shape(info, o.frames)) {}
  void write(const io::Array& frames) override { stream_.write(as_stored(info_, frames).bytes()); }
  void close(int64_t frames) override { stream_.close_early(frames); }

 private:
  const RecordingInfo& info_;
  io::NpyStream stream_;
};

// All frames must come: the size of an array stands before it.
class NpzTarget : public FrameTarget {
 public:
  NpzTarget(Recording& recording, const TargetOptions& o)
      : info_(recording.info()), frames_(o.frames), archive_(o.path) {
    if (const auto actions = actions_of(recording, o)) add("actions", *actions);
    const std::vector<double> times = recording.read_times(o.clip, o.first, o.frames);
    if (!times.empty()) add("times", io::make_array({std::ssize(times)}, times));
    archive_.begin("video", info_.dtype, stored_shape(info_, o.frames));
  }
  void write(const io::Array& frames) override { archive_.write(as_stored(info_, frames).bytes()); }
  void close(int64_t frames) override {
    if (frames != frames_)
      fail(ErrorKind::io, "stopped after {} of {} frames: an .npz file is written whole or not at all", frames,
           frames_);
    archive_.end();
    archive_.close();
  }

 private:
  void add(const char* name, const io::Array& array) {
    archive_.begin(name, array.dtype(), array.shape());
    archive_.write(array.bytes());
    archive_.end();
  }

  const RecordingInfo& info_;
  int64_t frames_;
  io::NpzStream archive_;
};

class Hdf5Target : public FrameTarget {
 public:
  Hdf5Target(Recording& recording, const TargetOptions& o) : info_(recording.info()), file_(o.path) {
    if (const auto actions = actions_of(recording, o)) add("actions", *actions);
    const std::vector<double> times = recording.read_times(o.clip, o.first, o.frames);
    if (!times.empty()) add("times", io::make_array({std::ssize(times)}, times));
    dtype_ = info_.dtype == io::DType::bool8 ? io::DType::u8 : without_halves(info_.dtype);
    file_.begin("video", dtype_, stored_shape(info_, o.frames));
  }
  void write(const io::Array& frames) override {
    const io::Array stored = as_stored(info_, without_halves(frames));
    io::Array rows(dtype_, stored.shape());  // a bool has the byte of its number
    std::ranges::copy(stored.bytes(), rows.bytes().begin());
    file_.write(rows);
  }
  void close(int64_t) override { file_.close(); }

 private:
  void add(const char* name, const io::Array& array) {
    file_.begin(name, array.dtype(), array.shape());
    file_.write(array);
  }

  const RecordingInfo& info_;
  io::DType dtype_;
  io::Hdf5Writer file_;
};

class FieldTarget : public FrameTarget {
 public:
  FieldTarget(Recording& recording, const TargetOptions& o)
      : writer_(o.path, format_of(recording.info()),
                {recording.info().axes,
                 recording.read_times(o.clip, o.first, o.frames),
                 {},
                 without_halves(recording.info().dtype),
                 o.zarr_version},
                o.frames) {}
  void write(const io::Array& frames) override {
    const io::Array all = without_halves(frames);
    std::vector<int64_t> shape(all.shape().begin() + 1, all.shape().end());
    const auto count = static_cast<size_t>(all.shape()[0]);
    for (size_t t = 0; t < count; ++t) {
      io::Array frame(all.dtype(), shape);
      std::memcpy(frame.bytes().data(), all.bytes().data() + t * frame.byte_count(), frame.byte_count());
      writer_.write(frame);
    }
  }
  void close(int64_t) override { writer_.close(); }

 private:
  static FrameFormat format_of(const RecordingInfo& info) {
    FrameFormat format(info.channels, info.height, info.width);
    if (!info.named_channels.empty()) format.channels = info.named_channels;
    return format;
  }
  FieldWriter writer_;
};

class TiffTarget : public FrameTarget {
 public:
  TiffTarget(const RecordingInfo& info, const TargetOptions& o)
      : file_(o.path, info.dtype == io::DType::bool8 ? io::DType::u8 : without_halves(info.dtype), info.height,
              info.width, info.channels) {}
  void write(const io::Array& frames) override {
    const io::Array pages = with_channels_last(without_halves(frames));
    if (pages.dtype() != io::DType::bool8) return file_.write(pages);
    io::Array bytes(io::DType::u8, pages.shape());
    std::ranges::copy(pages.bytes(), bytes.bytes().begin());
    file_.write(bytes);
  }
  void close(int64_t) override { file_.close(); }

 private:
  io::TiffWriter file_;
};

// To look at: bytes from black to white, what is no number is black. A video, or a folder of pictures.
class PictureTarget : public FrameTarget {
 public:
  PictureTarget(const RecordingInfo& info, const TargetOptions& o)
      : black_(o.black),
        white_(o.white > o.black ? o.white : o.black + 1),
        picture_{info.width, info.height, info.channels == 3 ? 3 : 1, {}} {
    if (o.path.ends_with("/")) {
      folder_.emplace(o.path.substr(0, o.path.find_last_not_of('/') + 1));
    } else {
      video_ = io::open_video(o.path, {o.frames, info.width, info.height, picture_.channels, o.fps, 1});
    }
    picture_.pixels.resize(static_cast<size_t>(info.width * info.height * picture_.channels));
  }
  void write(const io::Array& frames) override {
    const std::vector<int64_t>& s = frames.shape();
    const int64_t pixels = s[2] * s[3], shown = picture_.channels;
    with_numbers(frames, [&](auto values) {
      for (int64_t t = 0; t < s[0]; ++t) {
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = 0; c < shown; ++c) {
            const double value = number(values[static_cast<size_t>((t * s[1] + c) * pixels + p)]);
            const double share = std::isfinite(value) ? std::clamp((value - black_) / (white_ - black_), 0.0, 1.0) : 0;
            picture_.pixels[static_cast<size_t>(p * shown + c)] = static_cast<uint8_t>(std::lround(255 * share));
          }
        }
        put();
      }
    });
  }
  void close(int64_t) override { folder_ ? folder_->commit_whole() : video_->close_early(); }

 private:
  void put() {
    if (video_) return video_->write(picture_.pixels);
    io::write_png(folder_->path(fmt::format("{:06}.png", next_++)), picture_);
  }

  double black_, white_;
  io::Image picture_;
  std::optional<StagedFolder> folder_;
  std::unique_ptr<io::VideoWriter> video_;
  int64_t next_ = 0;
};

bool is_tiff(const std::string& ending) { return ending == ".tif" || ending == ".tiff"; }

}  // namespace

bool is_picture_target(const std::string& path) {
  const std::vector<std::string> videos = io::video_endings();
  return path.ends_with("/") || std::ranges::find(videos, file_ending(path)) != videos.end();
}

std::string target_endings() {
  std::vector<std::string> all{".npy", ".npz", ".h5", ".tif"};
  for (const auto& more : {io::grid_endings(), io::video_endings()}) all.insert(all.end(), more.begin(), more.end());
  return fmt::format("{}, or / for a folder of .png frames", fmt::join(all, ", "));
}

std::unique_ptr<FrameTarget> open_frame_target(Recording& recording, const TargetOptions& o) {
  const RecordingInfo& info = recording.info();
  const std::string ending = file_ending(o.path);
  if (is_picture_target(o.path)) return std::make_unique<PictureTarget>(info, o);
  if (ending == ".npy") return std::make_unique<NpyTarget>(info, o);
  if (ending == ".npz") return std::make_unique<NpzTarget>(recording, o);
  if (ending == ".h5" || ending == ".hdf5") return std::make_unique<Hdf5Target>(recording, o);
  if (is_tiff(ending)) return std::make_unique<TiffTarget>(info, o);
  if (is_field_name(o.path)) return std::make_unique<FieldTarget>(recording, o);
  fail(ErrorKind::usage, "[data convert] the name of a result ends with {}; got '{}'", target_endings(), o.path);
}

}  // namespace convssm::data
