// What all recordings share: from the order of elements in a file to [T,C,H,W], and checks of what is asked for.
#include "convssm/data/recording.h"

#include <ATen/ATen.h>

#include <cstring>

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

std::string actions_text(const RecordingInfo& info) {
  if (!info.has_actions) return "none";
  return info.action_values == 0 ? "whole numbers" : fmt::format("{} numbers per frame", info.action_values);
}

}  // namespace

int64_t Recording::place(int64_t clip, int64_t first, int64_t count) const {
  if (clip >= 0 && clip < info_.clips && first >= 0 && count > 0 && count <= info_.frames - first) {
    return clip * info_.frames + first;
  }
  fail(ErrorKind::usage, "[recording] '{}' has {} clips of {} frames, asked for {} from {} on of clip {}", info_.path,
       info_.clips, info_.frames, count, first, clip);
}

io::Array Recording::read(int64_t clip, int64_t first, int64_t count) {
  const io::Array stored = frames(place(clip, first, count), count);
  io::Array values(stored.dtype(), {count, info_.channels, info_.height, info_.width});
  const bool channels_last = info_.layout.letters.back() == 'C' && info_.channels > 1;
  if (channels_last) {
    channels_first(stored.bytes().data(), values.bytes().data(), count, info_.height * info_.width, info_.channels,
                   io::dtype_size(stored.dtype()));
  } else {
    std::memcpy(values.bytes().data(), stored.bytes().data(), values.byte_count());
  }
  return values;
}

void Recording::read_pixels(int64_t clip, int64_t first, int64_t count, const PixelRanges& ranges, float* out) {
  to_pixels(info_, clip, first, frames(place(clip, first, count), count), ranges, out);
}

at::Tensor Recording::read_actions(int64_t clip, int64_t first, int64_t count) {
  const int64_t from = place(clip, first, count);
  return info_.has_actions ? action_tensor(actions(from, count), info_.action_values, {count}, info_.path)
                           : at::Tensor();
}

at::Tensor Recording::read_actions() {
  if (!info_.has_actions) return {};
  return action_tensor(actions(0, info_.clips * info_.frames), info_.action_values, {info_.clips, info_.frames},
                       info_.path);
}

io::Array Recording::actions(int64_t, int64_t) {
  fail(ErrorKind::usage, "[recording] '{}' is of a kind that has no actions", info_.path);
}

std::string frame_text(const RecordingInfo& info) {
  return fmt::format("{}x{} with {} channel{}", info.height, info.width, info.channels, info.channels == 1 ? "" : "s");
}

void check_fit(const RecordingInfo& first, const RecordingInfo& other) {
  if (first.height != other.height || first.width != other.width || first.channels != other.channels) {
    fail(ErrorKind::data, "[folder] all frames must have one size: '{}' has {}, '{}' has {}", first.path,
         frame_text(first), other.path, frame_text(other));
  }
  if (first.has_actions != other.has_actions || first.action_values != other.action_values) {
    fail(ErrorKind::data, "[folder] either all files have actions or none, all of one kind: '{}' has {}, '{}' has {}",
         first.path, actions_text(first), other.path, actions_text(other));
  }
}

}  // namespace convssm::data
