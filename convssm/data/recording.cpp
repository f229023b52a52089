// What all recordings share: from the order of elements in a file to [T,C,H,W], and checks of what is asked for.
#include "convssm/data/recording.h"

#include <ATen/ATen.h>

#include <cstring>
#include <numeric>

#include "convssm/base/error.h"
#include "convssm/data/actions.h"
#include "convssm/data/pixels.h"

namespace convssm::data {
namespace {

// [T,H,W,C] to [T,C,H,W], elements of `size` bytes.
void channels_first(const std::byte* from, std::byte* to, int64_t frames, int64_t pixels, int64_t channels,
                    size_t size) {
  for (int64_t t = 0; t < frames; ++t, from += static_cast<size_t>(pixels * channels) * size) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p, to += size) {
        std::memcpy(to, from + static_cast<size_t>(p * channels + c) * size, size);
      }
    }
  }
}

// The memory for frames is as large as the file was when it was opened.
void require_size(const RecordingInfo& info, int64_t count, const io::Array& found) {
  if (found.element_count() == static_cast<uint64_t>(count) * info.frame_elements()) return;
  fail(ErrorKind::data,
       "[recording] '{}' has changed since it was opened: {} frames of {} expected, found {}; write to another file, "
       "and "
       "open this one again",
       info.path, count, frame_text(info), io::shape_text(found.shape()));
}

}  // namespace

int64_t RecordingInfo::all_frames() const {
  return lengths.empty() ? clips * frames : std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

Recording::Recording(RecordingInfo info, std::shared_ptr<ArrayCache> cache)
    : info_(std::move(info)), cache_(cache ? std::move(cache) : std::make_shared<ArrayCache>(0)) {}

void Recording::check_place(int64_t clip, int64_t first, int64_t count) const {
  if (clip >= 0 && clip < info_.clips && first >= 0 && count > 0 && count <= info_.length(clip) - first) return;
  fail(ErrorKind::usage, "[recording] '{}' has {} clips of {} frames, asked for {} from {} on of clip {}", info_.path,
       info_.clips, info_.length(std::clamp<int64_t>(clip, 0, info_.clips - 1)), count, first, clip);
}

io::Array Recording::read(int64_t clip, int64_t first, int64_t count) {
  check_place(clip, first, count);
  const io::Array stored = frames(clip, first, count);
  require_size(info_, count, stored);
  io::Array values(stored.dtype(), {count, info_.channels, info_.height, info_.width});
  if (channels_last(info_.layout) && info_.channels > 1) {
    channels_first(stored.bytes().data(), values.bytes().data(), count, info_.height * info_.width, info_.channels,
                   io::dtype_size(stored.dtype()));
  } else {
    std::memcpy(values.bytes().data(), stored.bytes().data(), values.byte_count());
  }
  return values;
}

void Recording::read_pixels(int64_t clip, int64_t first, int64_t count, const PixelRanges& ranges, float* out,
                            bool* valid) {
  check_place(clip, first, count);
  const io::Array stored = frames(clip, first, count);
  require_size(info_, count, stored);
  to_pixels(info_, clip, first, stored, ranges, out, valid);
}

at::Tensor Recording::read_actions(int64_t clip, int64_t first, int64_t count) {
  if (!info_.foresees_actions) check_place(clip, first, count);
  return info_.has_actions ? actions(clip, first, count) : at::Tensor();
}

std::vector<double> Recording::read_times(int64_t clip, int64_t first, int64_t count) const {
  return frame_times(clip, first, count);
}

std::vector<double> Recording::read_intervals(int64_t clip, int64_t first, int64_t count) const {
  check_place(clip, first, count);
  return frame_intervals(clip, first, count);
}

at::Tensor Recording::actions(int64_t clip, int64_t first, int64_t count) {
  return aligned_actions(cache(), action_place(clip), info_.stored_actions, first, count);
}

ActionPlace Recording::action_place(int64_t clip) const {
  return {info_.actions_path, info_.actions_key, clip * info_.stored_actions.rows};
}

RecordingInfo begin_info(const std::string& path, const char* kind, const RecordingOptions& options) {
  RecordingInfo info{.path = path, .name = options.name.empty() ? path : options.name, .kind = kind};
  info.reading = options;
  info.reading.cache = nullptr;
  return info;
}

io::Array with_channels_last(const io::Array& frames) {
  const std::vector<int64_t>& s = frames.shape();
  io::Array turned(frames.dtype(), {s[0], s[2], s[3], s[1]});
  const size_t size = io::dtype_size(frames.dtype()), pixels = static_cast<size_t>(s[2] * s[3]),
               C = static_cast<size_t>(s[1]);
  const std::byte* from = frames.bytes().data();
  std::byte* to = turned.bytes().data();
  for (int64_t t = 0; t < s[0]; ++t, from += pixels * C * size) {
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t c = 0; c < C; ++c, to += size) std::memcpy(to, from + (c * pixels + p) * size, size);
    }
  }
  return turned;
}

std::unique_ptr<Recording> reopen_in_order(const RecordingInfo& info) {
  RecordingOptions options = info.reading;
  options.access = Access::in_order, options.actions = options.actions_required = false;
  auto recording = open_recording(info.path, options);
  const RecordingInfo& now = recording->info();
  if (now.clips != info.clips || now.frames != info.frames || now.lengths != info.lengths || now.dtype != info.dtype ||
      now.channels != info.channels || now.height != info.height || now.width != info.width) {
    fail(ErrorKind::data,
         "[recording] '{}' has changed since it was opened: it had {} frames of {}, now {} of {}; start again when it "
         "is "
         "complete",
         info.path, info.all_frames(), frame_text(info), now.all_frames(), frame_text(now));
  }
  return recording;
}

std::string actions_text(const RecordingInfo& info) {
  if (!info.has_actions) return "none";
  if (info.action_maps > 0) return fmt::format("{} maps per frame", info.action_maps);
  return info.action_values == 0 ? "whole numbers" : fmt::format("{} numbers per frame", info.action_values);
}

std::string frame_text(const RecordingInfo& info) {
  return fmt::format("{}x{} with {} channel{}", info.height, info.width, info.channels, info.channels == 1 ? "" : "s");
}

void check_fit(const RecordingInfo& first, const RecordingInfo& other) {
  if (first.height != other.height || first.width != other.width || first.channels != other.channels) {
    fail(ErrorKind::data, "[folder] all frames must have one size: '{}' has {}, '{}' has {}", first.path,
         frame_text(first), other.path, frame_text(other));
  }
  if (first.has_actions != other.has_actions || first.action_values != other.action_values ||
      first.action_maps != other.action_maps) {
    const bool one_hot = first.stored_actions.one_hot || other.stored_actions.one_hot;
    fail(ErrorKind::data, "[folder] either all files have actions or none, all of one kind: '{}' has {}, '{}' has {}{}",
         first.path, actions_text(first), other.path, actions_text(other),
         one_hot ? "; actions_kind: values takes one-hot rows as numbers" : "");
  }
}

}  // namespace convssm::data
