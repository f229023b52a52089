#include "convssm/train/memory_estimate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/ops/memory_meter.h"
#include "convssm/train/gradients.h"

namespace convssm::train {
namespace {

// Memory that libraries take beside tensors, and fragments: measured runs stay below this factor.
constexpr double kSlack = 1.25;

uint64_t state_bytes(const models::State& state) {
  uint64_t bytes = 0;
  for (const auto& [name, value] : state.items()) bytes += value.nbytes();
  return bytes;
}

uint64_t peak_of(models::Model& model, const at::Tensor& video, int64_t frames, bool recompute) {
  ops::MemoryMeter meter;
  add_gradients(model, {video.slice(1, 0, frames), {}, {}}, 0, 1, recompute);
  return meter.peak();
}

uint64_t largest_parameter(const models::Model& model) {
  uint64_t bytes = 0;
  for (const at::Tensor& p : model.parameters()) bytes = std::max<uint64_t>(bytes, p.nbytes());
  return bytes;
}

int64_t frames_at_once(const TrainOptions& o) {
  return o.chunk_frames > 0 ? std::min(o.chunk_frames, o.frames - 1) : o.frames - 1;
}

int64_t pieces_of(const TrainOptions& o) { return (o.frames - 2 + frames_at_once(o)) / frames_at_once(o); }

}  // namespace

uint64_t MemoryEstimate::total(const TrainOptions& o) const {
  const double clips = static_cast<double>(o.batch / o.accumulate), frames = static_cast<double>(frames_at_once(o));
  const double cuts = static_cast<double>(o.frames - 1) / frames;
  const double kept = clips * (frames * static_cast<double>(per_frame) + frames * frames * per_pair);
  const double ahead = static_cast<double>((o.workers + 2) * o.batch * o.frames) * static_cast<double>(pixels);
  return static_cast<uint64_t>(static_cast<double>(program + fixed) + ahead +
                               kSlack * (kept + clips * cuts * static_cast<double>(state)));
}

MemoryEstimate estimate_memory(models::Model& model, int64_t channels, int64_t height, int64_t width, bool recompute) {
  const uint64_t parameters = 4 * models::parameter_count(model);
  const at::Tensor video = at::zeros({1, 8, channels, height, width});
  model.zero_grad(true);
  peak_of(model, video, 2, recompute);  // makes the gradients, which then stay
  const uint64_t three = peak_of(model, video, 4, recompute), seven = peak_of(model, video, 8, recompute);
  MemoryEstimate estimate;
  estimate.per_frame = seven > three ? (seven - three) / 4 : seven;
  const uint64_t scratch = three > 3 * estimate.per_frame ? three - 3 * estimate.per_frame : 0;
  estimate.fixed = 4 * parameters + std::max(scratch, largest_parameter(model));
  estimate.per_pair = model.pair_bytes();
  estimate.pixels = sizeof(float) * static_cast<uint64_t>(channels * height * width);
  {
    at::NoGradGuard no_grad;
    estimate.state = state_bytes(model.loss(at::zeros({1, 2, channels, height, width}), {}).state);
  }
  model.zero_grad(true);
  return estimate;
}

int64_t choose_chunk(const MemoryEstimate& estimate, const TrainOptions& options, uint64_t budget) {
  TrainOptions o = options;
  const auto total = [&](int64_t chunk) {
    o.chunk_frames = chunk;
    return estimate.total(o);
  };
  const int64_t whole = o.frames - 1;
  if (total(0) <= budget) return 0;
  // Long pieces keep much for their gradients, short ones many states at their cuts: from the least of both upwards.
  int64_t low = 1, high = whole;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (total(middle) < total(middle + 1)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (total(low) > budget) return low;
  high = whole;  // does not fit; low does
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (total(middle) <= budget ? low : high) = middle;
  }
  const int64_t pieces = (whole + low - 1) / low, even = (whole + pieces - 1) / pieces;
  return total(even) <= budget ? even : low;
}

std::string check_memory(const MemoryEstimate& estimate, const TrainOptions& o, bool constant_state,
                         uint64_t available) {
  const uint64_t need = estimate.total(o);
  std::string text = fmt::format(
      "a step takes about {}: {} for the model, {} per frame in memory ({} clips x {} frames)", format_bytes(need),
      format_bytes(estimate.fixed), format_bytes(estimate.per_frame), o.batch / o.accumulate, frames_at_once(o));
  if (const int64_t pieces = pieces_of(o); pieces > 1) text += fmt::format("; {} pieces of a clip", pieces);
  const uint64_t allowed = o.memory_bytes();
  const bool by_option = allowed > 0 && allowed < available;
  if (by_option) available = allowed;
  if (need <= available) return text;

  TrainOptions smaller = o;
  std::string advice;
  smaller.accumulate = o.batch;
  if (estimate.total(smaller) <= available) advice = fmt::format("train.accumulate={}", o.batch);
  while (advice.empty() && constant_state && frames_at_once(smaller) > 1) {
    smaller.chunk_frames = frames_at_once(smaller) / 2;
    if (estimate.total(smaller) > available) continue;
    advice = fmt::format("train.accumulate={} train.chunk_frames={}", o.batch, smaller.chunk_frames);
    if (estimate.total([&] {
          auto c = smaller;
          c.accumulate = o.accumulate;
          return c;
        }()) <= available) {
      advice = fmt::format("train.chunk_frames={}", smaller.chunk_frames);
    }
  }
  const std::string what = advice.empty()
                               ? "Use a smaller model, shorter clips (train.frames) or a smaller batch (train.batch)"
                               : "This would fit, with the same gradients: " + advice;
  fail(ErrorKind::usage, "{}, but {} {}. {}", text, by_option ? "train.memory allows only" : "there are only",
       format_bytes(available) + (by_option ? "" : " available"),
       o.recompute ? what : what + ". train.recompute=true keeps less for each frame");
}

}  // namespace convssm::train
