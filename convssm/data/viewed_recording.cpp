// Frame j of the view is frame j * stride of the recording. The action that led to it is the last one on the way, or the sum
// of all on the way: from the one after frame (j-1) * stride on.
#include "convssm/data/viewed_recording.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "convssm/base/error.h"
#include "convssm/data/array_choice.h"

namespace convssm::data {
namespace {

int64_t strided(int64_t frames, int64_t stride) { return (frames + stride - 1) / stride; }

// Coordinates are seen as pixels are: a row that is the mean of several has the mean of their latitudes.
Axis axis_in_view(const Axis& axis, bool rows, const RecordingInfo& info, FrameView view) {
  if (std::ssize(axis.values) != (rows ? info.height : info.width)) return {};
  view.colour = Colour::keep;
  io::Array all(io::DType::f64, {1, 1, info.height, info.width});
  for (int64_t i = 0; i < info.height * info.width; ++i) {
    const int64_t at = rows ? i / info.width : i % info.width;
    all.values<double>()[static_cast<size_t>(i)] = axis.values[static_cast<size_t>(at)];
  }
  const io::Array seen = frames_in_view(view, all, info.path);
  const int64_t height = seen.shape()[2], width = seen.shape()[3];
  Axis viewed{axis.name, axis.units, {}};
  for (int64_t i = 0; i < (rows ? height : width); ++i) {
    viewed.values.push_back(seen.values<double>()[static_cast<size_t>(rows ? i * width : i)]);
  }
  return viewed;
}

RecordingInfo info_in_view(const Recording& recording, const FrameView& view) {
  RecordingInfo info = recording.info();
  if (view.changes_frames() && reads_codes(info.key, info.reading.content)) {
    fail(ErrorKind::data, "[folder] '{}' holds codes, which have no pixels: size and colour are for videos", info.path);
  }
  const FrameSize size = size_in_view(view, {info.channels, info.height, info.width}, info.path);
  info.channels = size.channels, info.height = size.height, info.width = size.width;
  info.dtype = dtype_in_view(view, info.dtype);
  info.frames = strided(info.frames, view.stride);
  for (int64_t& length : info.lengths) length = strided(length, view.stride);
  info.axes.step *= static_cast<double>(view.stride), info.axes.months *= view.stride;
  if (view.changes_size()) {
    const Axes& axes = recording.info().axes;
    info.axes.rows = axis_in_view(axes.rows, true, recording.info(), view);
    info.axes.columns = axis_in_view(axes.columns, false, recording.info(), view);
  }
  if (view.changes_frames() && info.action_maps > 0) {
    fail(ErrorKind::data, "[folder] '{}' has forcings, maps beside its frames: size and colour are for videos",
         info.path);
  }
  info.layout = {"TCHW",
                 fmt::format("the frames are changed; in the file {}, {}", info.layout.letters, info.layout.reason)};
  if (view.stride_actions == StrideActions::sum && info.has_actions && info.action_values == 0) {
    fail(ErrorKind::data,
         "[folder] '{}': stride_actions: sum is for actions that are numbers, these are whole numbers of "
         "which one is chosen; use last",
         info.path);
  }
  return info;
}

constexpr int64_t chunk_frames = 64;

// Frame `at` of [T,C,H,W], as [1,C,H,W].
io::Array frame_of(const io::Array& frames, int64_t at) {
  std::vector<int64_t> shape = frames.shape();
  shape[0] = 1;
  io::Array one(frames.dtype(), shape);
  std::memcpy(one.bytes().data(), frames.bytes().data() + static_cast<uint64_t>(at) * one.byte_count(),
              one.byte_count());
  return one;
}

void put(io::Array& all, int64_t at, const io::Array& one) {
  std::memcpy(all.bytes().data() + static_cast<uint64_t>(at) * one.byte_count(), one.bytes().data(), one.byte_count());
}

class ViewedRecording : public Recording {
 public:
  ViewedRecording(std::unique_ptr<Recording> inner, const FrameView& view)
      : Recording(info_in_view(*inner, view), nullptr), inner_(std::move(inner)), view_(view) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    const int64_t stride = view_.stride;
    if (stride == 1) return frames_in_view(view_, inner_->read(clip, first, count), info().path);
    io::Array all(info().dtype, {count, info().channels, info().height, info().width});
    // What is left out is not read, unless frames are decoded from those before them.
    const int64_t at_once = info().sequential ? std::max<int64_t>(1, chunk_frames / stride) : 1;
    for (int64_t k = 0; k < count; k += at_once) {
      const int64_t some = std::min(at_once, count - k);
      const io::Array span = inner_->read(clip, (first + k) * stride, (some - 1) * stride + 1);
      for (int64_t i = 0; i < some; ++i)
        put(all, k + i, frames_in_view(view_, frame_of(span, i * stride), info().path));
    }
    return all;
  }

  at::Tensor actions(int64_t clip, int64_t first, int64_t count) override {
    const int64_t stride = view_.stride;
    if (stride == 1) return inner_->read_actions(clip, first, count);
    if (info().action_maps > 0) {  // of the frames that are taken alone
      std::vector<at::Tensor> maps;
      for (int64_t k = 0; k < count; ++k) maps.push_back(inner_->read_actions(clip, (first + k) * stride, 1));
      return at::cat(maps);
    }
    const bool sum = view_.stride_actions == StrideActions::sum;
    const int64_t from = first == 0 || !sum ? first * stride : (first - 1) * stride + 1;
    const int64_t last = (first + count - 1) * stride;
    const at::Tensor all = inner_->read_actions(clip, from, last - from + 1);
    std::vector<at::Tensor> taken;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = (first + k) * stride - from;
      const int64_t begin = sum && first + k > 0 ? at - stride + 1 : at;
      taken.push_back(begin == at ? all[at] : all.slice(0, begin, at + 1).sum(0));
    }
    return at::stack(taken);
  }

  std::vector<double> frame_times(int64_t clip, int64_t first, int64_t count) const override {
    const int64_t stride = view_.stride;
    const std::vector<double> all = inner_->read_times(clip, first * stride, (count - 1) * stride + 1);
    std::vector<double> taken;
    for (size_t i = 0; i < all.size(); i += static_cast<size_t>(stride)) taken.push_back(all[i]);
    return taken;
  }

  // The steps on the way to a frame add up; before the first one of a clip there is none.
  std::vector<double> frame_intervals(int64_t clip, int64_t first, int64_t count) const override {
    const int64_t stride = view_.stride, from = first == 0 ? 0 : (first - 1) * stride + 1;
    const std::vector<double> all = inner_->read_intervals(clip, from, (first + count - 1) * stride - from + 1);
    if (all.empty()) return {};
    std::vector<double> taken;
    for (int64_t k = first; k < first + count; ++k) {
      const int64_t last = k * stride - from, begin = std::max<int64_t>(0, last - stride + 1);
      double sum = 0;
      for (int64_t i = begin; i <= last; ++i) sum += all[static_cast<size_t>(i)];
      taken.push_back(k == 0 ? 1 : sum / static_cast<double>(stride));
    }
    return taken;
  }

 private:
  std::unique_ptr<Recording> inner_;
  FrameView view_;
};

}  // namespace

std::unique_ptr<Recording> view_recording(std::unique_ptr<Recording> recording, const FrameView& view) {
  view.check();
  return std::make_unique<ViewedRecording>(std::move(recording), view);
}

}  // namespace convssm::data
