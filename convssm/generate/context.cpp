// Frames become [-1,1] as the model learned them: by the ranges of its own data, not by what the file happens to hold.
// Only what is always bytes, such as an animation, is 0 to 255 whatever the units of the data.
#include "convssm/generate/context.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"

namespace convssm::generate {
namespace {

void check_frames(const data::RecordingInfo& info, const data::FrameFormat& format) {
  const data::FrameFormat found(info.channels, info.height, info.width);
  if (found.same_size(format)) return;
  fail(ErrorKind::data, "{} holds frames of {} ({}); the model was trained on {}", info.path, found.size_text(),
       info.layout.reason, format.size_text());
}

void check_amount(const data::RecordingInfo& info, const ContextOptions& o) {
  if (o.frames < 0) fail(ErrorKind::usage, "the context must have a positive number of frames, got {}", o.frames);
  if (info.frames < o.frames) {
    fail(ErrorKind::data, "{} has {} frames, a context of {} is asked for", info.path, info.frames, o.frames);
  }
  if (o.clip < info.clips) return;
  fail(ErrorKind::data, "{} holds {} clips, number {} is asked for (they count from 0)", info.path, info.clips, o.clip);
}

}  // namespace

Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& o) {
  const auto recording =
      data::open_recording(path, {.key = o.key, .layout = o.layout, .access = data::Access::in_order});
  const data::RecordingInfo& info = recording->info();
  check_frames(info, format);
  check_amount(info, o);

  const int64_t K = o.frames > 0 ? o.frames : info.frames, first = std::max<int64_t>(o.clip, 0);
  const int64_t N = o.clip < 0 ? info.clips : 1;
  data::PixelRanges ranges{format.channels, format.clamp};
  if (info.always_bytes) ranges.channels.assign(format.channels.size(), data::Channel{});
  Context context;
  context.clips.video = at::empty({N, K, info.channels, info.height, info.width}, at::kFloat);
  for (int64_t i = 0; i < N; ++i) {
    recording->read_pixels(first + i, 0, K, ranges, context.clips.video[i].data_ptr<float>());
  }
  if (info.has_actions) {
    context.actions = recording->read_actions().slice(0, first, first + N);
    context.clips.actions = context.actions.slice(1, 0, K);
  }
  context.description = fmt::format("{} {} of {} frames, {} ({})", N, N == 1 ? "clip" : "clips", K, format.size_text(),
                                    info.layout.letters);
  return context;
}

}  // namespace convssm::generate
