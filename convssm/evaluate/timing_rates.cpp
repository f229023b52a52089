// Other frame rates: every s-th frame of the fine clips. A model was trained to look one training interval ahead, so its
// forecast is compared with that moment and with the next frame of the stream.
#include <ATen/ATen.h>

#include "convssm/evaluate/timing_parts.h"

namespace convssm::evaluate {

TimingLines rate_lines() {
  return {{"rescaled, one interval ahead", "not rescaled, one interval ahead", "rescaled, next frame",
           "not rescaled, next frame", "copy, one interval ahead"},
          kStrides.size()};
}

bool add_rates(TimingLines& lines, const TimingJob& job, const at::Tensor& video) {
  const int64_t end = kGrid * job.options.frames, warm = kGrid * job.options.context;
  const auto frames = [&](const at::Tensor& x) { return as_frames(x, job.options.quantize); };
  for (size_t point = 0; point < kStrides.size(); ++point) {
    const int64_t s = kStrides[point], first = (warm + s - 1) / s, begin = first * s;
    const at::Tensor fed = video.slice(1, 0, end, s);
    const double rescale = static_cast<double>(s) / kGrid;
    const auto forecasts = [&](double step_rescale) {
      data::Clips clips{fed};
      clips.timing.step_rescale = step_rescale;
      return frames(job.model.forecasts(clips, {}).slice(1, first));
    };
    const Frames rescaled = forecasts(rescale), plain = forecasts(1);
    const Frames ahead = frames(video.slice(1, begin + kGrid, end + kGrid, s));
    const Frames next = frames(video.slice(1, begin + s, end + s, s));
    const auto add = [&](size_t line, const Frames& truth, const Frames& forecast) {
      lines.add(line, point, score_frames(job.metrics, truth, forecast), {});
    };
    add(0, ahead, rescaled);
    add(1, ahead, plain);
    add(2, next, rescaled);
    add(3, next, plain);
    add(4, ahead, frames(fed.slice(1, first)));
    if (!job.go_on()) return false;
  }
  return true;
}

}  // namespace convssm::evaluate
