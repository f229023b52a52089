// Frames become [-1,1] as the model learned them: by the ranges of its own data, not by what the file happens to hold.
// Only what is always bytes, such as an animation, is 0 to 255 whatever the units of the data.
#include "convssm/generate/context.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"

namespace convssm::generate {
namespace {

// An .mp4 has three channels even of a grey model, a .gif one if all of it is grey.
bool changes_colours(const data::RecordingInfo& info, int64_t channels) {
  return info.always_bytes && info.channels + channels == 4 && info.channels != channels;  // 1 and 3
}

// [K,1,H,W] from [K,3,H,W] or the other way. Error(data) if colours would be lost.
at::Tensor changed_colours(const at::Tensor& video, const std::string& path) {
  if (video.size(1) == 1) return video.expand({-1, 3, -1, -1});
  constexpr double rounding = 8 / 127.5;  // what a lossy format may make of grey
  if ((video.amax(1) - video.amin(1)).max().item<double>() > rounding) {
    fail(ErrorKind::data, "{} is in colour; the model was trained on frames of 1 channel", path);
  }
  return video.mean(1, true);
}

void check_frames(const data::RecordingInfo& info, const data::FrameFormat& format) {
  const bool changes = changes_colours(info, format.depth());
  const data::FrameFormat found(changes ? format.depth() : info.channels, info.height, info.width);
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
  if (info.always_bytes) ranges.channels.assign(static_cast<size_t>(info.channels), data::Channel{});
  Context context;
  require_file_memory(path, "its frames as a context (--context-frames takes fewer)",
                      static_cast<uint64_t>(N * K) * info.frame_elements() * sizeof(float));
  at::Tensor video = at::empty({N, K, info.channels, info.height, info.width}, at::kFloat);
  for (int64_t i = 0; i < N; ++i) recording->read_pixels(first + i, 0, K, ranges, video[i].data_ptr<float>());
  if (changes_colours(info, format.depth())) video = changed_colours(video[0], path).unsqueeze(0);
  context.clips.video = video;
  if (info.has_actions) {
    context.actions = recording->read_actions().slice(0, first, first + N);
    context.clips.actions = context.actions.slice(1, 0, K);
  }
  context.description = fmt::format("{} {} of {} frames, {} ({})", N, N == 1 ? "clip" : "clips", K, format.size_text(),
                                    info.layout.letters);
  return context;
}

}  // namespace convssm::generate
