// Missing frames at the training rate. After every frame that was seen, the forecast of the frame one interval later is
// compared with the truth; the four differ in what the model is given in between.
#include <ATen/ATen.h>

#include "convssm/base/random.h"
#include "convssm/evaluate/timing_parts.h"

namespace convssm::evaluate {
namespace {

// The frames of each clip that were kept, [B,L,...], with the intervals before them, [B,L]. Clips with fewer than L
// repeat their last one; nothing after it depends on that.
struct Kept {
  std::vector<at::Tensor> times;  // of each clip, [n]
  at::Tensor video, dt;
};

Kept gather_kept(const at::Tensor& video, const at::Tensor& kept) {
  Kept result;
  int64_t longest = 0;
  for (int64_t b = 0; b < video.size(0); ++b) {
    result.times.push_back(kept[b].nonzero().squeeze(1));
    longest = std::max(longest, result.times.back().numel());
  }
  std::vector<at::Tensor> clips, intervals;
  for (int64_t b = 0; b < video.size(0); ++b) {
    const at::Tensor& times = result.times[static_cast<size_t>(b)];
    const int64_t padding = longest - times.numel();
    const at::Tensor last = times.slice(0, times.numel() - 1);
    clips.push_back(video[b].index_select(0, at::cat({times, last.expand({padding})})));
    const at::Tensor gaps =
        at::cat({at::ones({1}, times.options()), at::diff(times), at::ones({padding}, times.options())});
    intervals.push_back(gaps.to(at::kDouble));
  }
  result.video = at::stack(clips);
  result.dt = at::stack(intervals);
  return result;
}

// Forecasts of the kept frames alone, each at its time; other times are left black.
at::Tensor skipping(const TimingJob& job, const at::Tensor& video, const Kept& kept, bool tell_intervals) {
  data::Clips clips{kept.video};
  if (tell_intervals) clips.timing.dt = kept.dt;
  const at::Tensor found = job.model.forecasts(clips, {});
  at::Tensor all = at::full_like(video, -1, at::MemoryFormat::Contiguous);
  for (int64_t b = 0; b < video.size(0); ++b) {
    const at::Tensor& times = kept.times[static_cast<size_t>(b)];
    all[b].index_copy_(0, times, found[b].slice(0, 0, times.numel()));
  }
  return all;
}

// A missing frame is the last one that was kept.
at::Tensor holding(const TimingJob& job, const at::Tensor& video, const at::Tensor& kept) {
  const at::Tensor times = at::arange(video.size(1), kept.options().dtype(at::kLong)),
                   last = std::get<0>(at::cummax(times * kept, 1));
  std::vector<at::Tensor> clips;
  for (int64_t b = 0; b < video.size(0); ++b) clips.push_back(video[b].index_select(0, last[b]));
  return job.model.forecasts({at::stack(clips)}, {});
}

// A missing frame is the forecast of it.
at::Tensor filling(const TimingJob& job, const at::Tensor& video, const at::Tensor& kept) {
  at::Tensor all = at::empty_like(video, at::MemoryFormat::Contiguous), frame = video.select(1, 0);
  models::State state;
  for (int64_t t = 0; t < video.size(1); ++t) {
    if (t > 0) frame = at::where(kept.select(1, t).view({-1, 1, 1, 1}), video.select(1, t), all.select(1, t - 1));
    state = t == 0 ? job.model.start({frame.unsqueeze(1)}, {}) : job.model.observe(state, frame, {});
    models::Forecast out = job.model.next(state, {});
    all.select(1, t).copy_(out.frame);
    state = std::move(out.state);
  }
  return all;
}

}  // namespace

TimingLines dropped_lines() {
  return {
      {"true intervals", "intervals ignored", "last frame held", "own forecast filled in", "copy of the last frame"},
      kDropProbabilities.size()};
}

at::Tensor kept_frames(uint64_t seed, int64_t clip, double probability, int64_t frames) {
  Stream stream(seed, "dropped frames", static_cast<uint64_t>(clip));
  at::Tensor kept = at::ones({frames}, at::kBool);
  for (int64_t t = 1; t < frames; ++t) kept.data_ptr<bool>()[t] = stream.uniform() >= probability;
  return kept;
}

bool add_dropped(TimingLines& lines, const TimingJob& job, const at::Tensor& video, int64_t first) {
  const int64_t intervals = job.options.frames, warm = job.options.context;
  const at::Tensor seen = video.slice(1, 0, intervals);
  const auto frames = [&](const at::Tensor& x) { return as_frames(x.slice(1, warm), job.options.quantize); };
  const Frames truth = frames(video.slice(1, 1));
  for (size_t point = 0; point < kDropProbabilities.size(); ++point) {
    std::vector<at::Tensor> masks;
    for (int64_t b = 0; b < video.size(0); ++b) {
      masks.push_back(kept_frames(job.options.seed, first + b, kDropProbabilities[point], intervals));
    }
    const at::Tensor counted = at::stack(masks), kept = counted.to(video.device());
    const Kept gathered = gather_kept(seen, kept);
    const auto add = [&](size_t line, const at::Tensor& forecasts) {
      lines.add(line, point, score_frames(job.metrics, truth, frames(forecasts)), counted.slice(1, warm));
    };
    add(0, skipping(job, seen, gathered, true));
    add(1, skipping(job, seen, gathered, false));
    add(2, holding(job, seen, kept));
    add(3, filling(job, seen, kept));
    add(4, seen);
    if (!job.go_on()) return false;
  }
  return true;
}

}  // namespace convssm::evaluate
