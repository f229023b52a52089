#include "convssm/data/convert.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/data/field_writer.h"
#include "convssm/data/numbers.h"
#include "convssm/data/value_range.h"
#include "convssm/io/npy.h"
#include "convssm/io/npy_stream.h"
#include "convssm/io/tensor.h"
#include "convssm/io/video_writer.h"

namespace convssm::data {
namespace {

constexpr uint64_t kPartElements = uint64_t{1} << 22;

// What takes frames [T,C,H,W] in their stored type, some at a time.
class FrameTarget {
 public:
  virtual ~FrameTarget() = default;
  virtual void write(const io::Array& frames) = 0;
  virtual void close(int64_t frames) = 0;  // so many came
};

bool are_pictures(const RecordingInfo& info) {
  return info.named_channels.empty() && (info.channels == 1 || info.channels == 3);
}

std::vector<int64_t> stored_shape(const RecordingInfo& info, int64_t frames) {
  return are_pictures(info) ? std::vector{frames, info.height, info.width, info.channels}
                            : std::vector{frames, info.channels, info.height, info.width};
}

class NpyTarget : public FrameTarget {
 public:
  NpyTarget(const std::string& path, const RecordingInfo& info, int64_t frames)
      : turns_(are_pictures(info)), stream_(path, info.dtype, stored_shape(info, frames)) {}
  void write(const io::Array& frames) override {
    const io::Array stored = turns_ ? with_channels_last(frames) : frames;
    stream_.write(stored.bytes());
  }
  void close(int64_t frames) override { stream_.close_early(frames); }

 private:
  bool turns_;
  io::NpyStream stream_;
};

// All frames must come: the size of an array stands before it.
class NpzTarget : public FrameTarget {
 public:
  NpzTarget(const std::string& path, const RecordingInfo& info, int64_t frames, const at::Tensor& actions,
            const std::vector<double>& times)
      : turns_(are_pictures(info)), frames_(frames), archive_(path) {
    if (actions.defined()) add("actions", io::to_array(actions));
    if (!times.empty()) add("times", io::make_array({std::ssize(times)}, times));
    archive_.begin("video", info.dtype, stored_shape(info, frames));
  }
  void write(const io::Array& frames) override {
    const io::Array stored = turns_ ? with_channels_last(frames) : frames;
    archive_.write(stored.bytes());
  }
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

  bool turns_;
  int64_t frames_;
  io::NpzStream archive_;
};

class FieldTarget : public FrameTarget {
 public:
  FieldTarget(const std::string& path, const RecordingInfo& info, int64_t frames, const std::vector<double>& times)
      : writer_(path, format_of(info), {info.axes, times, {}}, frames) {}
  void write(const io::Array& frames) override {
    const std::vector<int64_t>& s = frames.shape();
    at::Tensor values = at::empty(s, at::kFloat);
    with_numbers(frames, [&](auto elements) {
      std::ranges::transform(elements, values.data_ptr<float>(),
                             [](const auto& x) { return static_cast<float>(number(x)); });
    });
    for (int64_t t = 0; t < s[0]; ++t) writer_.write(values[t]);
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

class PictureTarget : public FrameTarget {
 public:
  PictureTarget(const std::string& path, const RecordingInfo& info, int64_t frames, double fps)
      : shown_(info.channels == 3 ? 3 : 1),
        video_(io::open_video(path, {frames, info.width, info.height, shown_, fps, 1})) {
    if (info.dtype == io::DType::u8) return;
    Extremes found;
    for (const Extremes& channel : recording_extremes(info)) found.add(channel);
    low_ = found.low, high_ = found.high > found.low ? found.high : found.low + 1;
  }
  void write(const io::Array& frames) override {
    const std::vector<int64_t>& s = frames.shape();
    const int64_t pixels = s[2] * s[3];
    std::vector<uint8_t> picture(static_cast<size_t>(pixels * shown_));
    with_numbers(frames, [&](auto values) {
      for (int64_t t = 0; t < s[0]; ++t) {
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = 0; c < shown_; ++c) {
            const double value = number(values[static_cast<size_t>((t * s[1] + c) * pixels + p)]);
            const double share = std::isfinite(value) ? std::clamp((value - low_) / (high_ - low_), 0.0, 1.0) : 0;
            picture[static_cast<size_t>(p * shown_ + c)] = static_cast<uint8_t>(std::lround(255 * share));
          }
        }
        video_->write(picture);
      }
    });
  }
  void close(int64_t) override { video_->close_early(); }

 private:
  int64_t shown_;
  double low_ = 0, high_ = 255;
  std::unique_ptr<io::VideoWriter> video_;
};

std::unique_ptr<FrameTarget> open_target(Recording& recording, int64_t clip, const std::string& path, int64_t first,
                                         int64_t frames, double fps) {
  const RecordingInfo& info = recording.info();
  const std::string ending = file_ending(path);
  const auto times = [&] { return recording.read_times(clip, first, frames); };
  if (ending == ".npy") return std::make_unique<NpyTarget>(path, info, frames);
  if (ending == ".npz") {
    return std::make_unique<NpzTarget>(path, info, frames, recording.read_actions(clip, first, frames), times());
  }
  if (is_field_name(path)) return std::make_unique<FieldTarget>(path, info, frames, times());
  const std::vector<std::string> videos = io::video_endings();
  if (std::ranges::find(videos, ending) != videos.end())
    return std::make_unique<PictureTarget>(path, info, frames, fps);
  fail(ErrorKind::usage, "[data convert] the name of a result ends with {}; got '{}'", convertible_endings(), path);
}

}  // namespace

std::string convertible_endings() {
  std::vector<std::string> all{".npy", ".npz"};
  for (const auto& more : {io::grid_endings(), io::video_endings()}) all.insert(all.end(), more.begin(), more.end());
  return fmt::format("{}", fmt::join(all, ", "));
}

void convert_clip(Recording& recording, int64_t clip, const std::string& path, const ConvertOptions& o,
                  const std::function<bool(int64_t)>& progress) {
  const RecordingInfo& info = recording.info();
  const int64_t length = info.length(clip), frames = o.frames > 0 ? o.frames : length - o.first;
  if (o.first < 0 || frames < 1 || frames > length - o.first) {
    fail(ErrorKind::usage, "[data convert] '{}' clip {} has {} frames, {} from {} on are asked for", info.path, clip,
         length, o.frames > 0 ? fmt::format("{}", o.frames) : "those", o.first);
  }
  const auto target = open_target(recording, clip, path, o.first, frames, o.fps);
  const auto part = static_cast<int64_t>(std::max<uint64_t>(1, kPartElements / info.frame_elements()));
  int64_t done = 0;
  for (bool go_on = true; done < frames && go_on;) {
    const int64_t some = std::min(part, frames - done);
    target->write(recording.read(clip, o.first + done, some));
    done += some;
    go_on = !progress || progress(done);
  }
  target->close(done);
}

}  // namespace convssm::data
