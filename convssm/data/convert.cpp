#include "convssm/data/convert.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/data/frame_target.h"

namespace convssm::data {
namespace {

constexpr uint64_t kPartElements = uint64_t{1} << 20;

// Frames of a clip from `first` on, a part at a time and in order, until `take` is false.
void for_each_part(Recording& recording, int64_t clip, int64_t first, int64_t frames,
                   const std::function<bool(const io::Array&, int64_t done)>& take) {
  const auto part = static_cast<int64_t>(std::max<uint64_t>(1, kPartElements / recording.info().frame_elements()));
  for (int64_t done = 0; done < frames;) {
    const int64_t some = std::min(part, frames - done);
    const io::Array values = recording.read(clip, first + done, some);
    done += some;
    if (!take(values, done)) return;
  }
}

// How many, checked.
int64_t frames_of(const RecordingInfo& info, int64_t clip, const ConvertOptions& o) {
  const int64_t length = info.length(clip), frames = o.frames > 0 ? o.frames : length - o.first;
  if (o.first >= 0 && frames > 0 && frames <= length - o.first) return frames;
  fail(ErrorKind::usage, "[data convert] '{}' clip {} has {} frames, {} from {} on are asked for", info.path, clip,
       length, o.frames > 0 ? fmt::format("{}", o.frames) : "those", o.first);
}

}  // namespace

std::string convertible_endings() { return target_endings(); }

std::optional<Extremes> shown_extremes(const RecordingInfo& info, int64_t clip, const std::string& path,
                                       const ConvertOptions& o) {
  if (!is_picture_target(path) || info.dtype == io::DType::u8) return std::nullopt;
  const auto recording = reopen_in_order(info);
  Extremes found;
  for_each_part(*recording, clip, o.first, frames_of(info, clip, o), [&](const io::Array& values, int64_t) {
    for (const Extremes& channel : channel_extremes(values)) found.add(channel);
    return true;
  });
  return found;
}

void convert_clip(Recording& recording, int64_t clip, const std::string& path, const ConvertOptions& o,
                  const std::function<bool(int64_t)>& progress) {
  const int64_t frames = frames_of(recording.info(), clip, o);
  TargetOptions to{path, clip, o.first, frames, o.fps, o.zarr_version};
  if (const auto shown = o.shown ? o.shown : shown_extremes(recording.info(), clip, path, o))
    to.black = shown->low, to.white = shown->high;
  const auto target = open_frame_target(recording, to);
  int64_t came = 0;
  for_each_part(recording, clip, o.first, frames, [&](const io::Array& values, int64_t done) {
    target->write(values);
    came = done;
    return !progress || progress(done);
  });
  target->close(came);
}

}  // namespace convssm::data
