// Measured, not derived: a meter counts the bytes of all tensors while short clips run, so a new model needs no formula.
// The model may be one that goes on from a checkpoint: what a run changes besides gradients is put back.
#include "convssm/train/memory_estimate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/ops/memory_meter.h"
#include "convssm/train/gradients.h"
#include "convssm/train/optimizer.h"

namespace convssm::train {
namespace {

// Memory that libraries take beside tensors, and fragments: measured runs stay below this factor.
constexpr double kSlack = 1.25;

uint64_t state_bytes(const models::State& state) {
  uint64_t bytes = 0;
  for (const auto& [name, value] : state.items()) bytes += value.nbytes();
  return bytes;
}

// The buffers of a model as they were, when it ends.
class KeepBuffers {
 public:
  explicit KeepBuffers(models::Model& model) {
    for (const at::Tensor& buffer : model.buffers()) kept_.emplace_back(buffer, buffer.clone());
  }
  ~KeepBuffers() {
    const at::NoGradGuard no_grad;
    for (auto& [buffer, values] : kept_) buffer.copy_(values);
  }
  KeepBuffers(const KeepBuffers&) = delete;
  KeepBuffers& operator=(const KeepBuffers&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> kept_;
};

// The most of any player, at the last step: parts of a loss may begin late.
uint64_t peak_of(models::Model& model, const data::Clips& clip, int64_t frames, const TrainOptions& o) {
  uint64_t peak = 0;
  for (const models::Player& player : model.players()) {
    const OnlyLearner only(model, player);
    ops::MemoryMeter meter;
    const models::LossContext context{.player = player.name, .step = o.steps - 1, .steps = o.steps};
    add_gradients(model, data::frames_of(clip, 0, frames), context, 0, 1, o.recompute);
    peak = std::max(peak, meter.peak());
  }
  return peak;
}

uint64_t clip_bytes(const data::Clips& clip) {
  uint64_t bytes = 0;
  for (const at::Tensor& x : {clip.video, clip.actions, clip.codes, clip.valid}) bytes += x.defined() ? x.nbytes() : 0;
  return bytes;
}

uint64_t largest_parameter(const models::Model& model) {
  uint64_t bytes = 0;
  for (const at::Tensor& p : model.parameters()) bytes = std::max<uint64_t>(bytes, p.nbytes());
  return bytes;
}

// Those that have a loss.
int64_t frames_of_loss(const MemoryEstimate& estimate, int64_t frames) {
  const int64_t all = std::max<int64_t>(frames - estimate.given, 1);
  return estimate.most > 0 ? std::min(all, estimate.most) : all;
}

int64_t frames_at_once(const MemoryEstimate& estimate, const TrainOptions& o) {
  const int64_t all = frames_of_loss(estimate, o.frames);
  return o.chunk_frames > 0 ? std::min(o.chunk_frames, all) : all;
}

int64_t chunks_of(const MemoryEstimate& estimate, const TrainOptions& o) {
  return (frames_of_loss(estimate, o.frames) - 1 + frames_at_once(estimate, o)) / frames_at_once(estimate, o);
}

// What learns has gradients and two moments beside it, and perhaps an average; what does not is there once.
uint64_t learned_bytes(const models::Model& model, const TrainOptions& o) {
  uint64_t bytes = 0;
  for (const at::Tensor& p : model.parameters()) bytes += p.nbytes();
  for (const models::Player& player : model.players()) {
    const uint64_t copies = o.player(player.name).ema > 0 ? 4 : 3;
    for (const auto& [name, p] : player.parameters) bytes += copies * p.nbytes();
  }
  return bytes;
}

}  // namespace

uint64_t MemoryEstimate::total(const TrainOptions& o) const {
  const double clips = static_cast<double>(o.batch / o.accumulate),
               frames = static_cast<double>(frames_at_once(*this, o));
  const double cuts = static_cast<double>(o.frames - given) / frames;
  const double kept = clips * (frames * static_cast<double>(per_frame) + frames * frames * per_pair);
  const double ahead = static_cast<double>((o.workers + 2) * o.batch * o.frames) * static_cast<double>(pixels);
  const double carried = o.carry_state ? static_cast<double>(2 * o.batch) * static_cast<double>(state) : 0;
  return static_cast<uint64_t>(static_cast<double>(program + fixed) + ahead + carried +
                               kSlack * (kept + clips * cuts * static_cast<double>(state)));
}

MemoryEstimate estimate_memory(models::Model& model, const data::Clips& clip, const TrainOptions& o) {
  const KeepBuffers buffers(model);
  const int64_t many = std::min(model.telling_frames(), clip.frames()),
                few = std::max(many / 2, std::min<int64_t>(many, 2));
  model.zero_grad(true);
  peak_of(model, clip, few, o);  // makes the gradients, which then stay
  const uint64_t low = peak_of(model, clip, few, o), high = peak_of(model, clip, many, o);
  MemoryEstimate estimate;
  estimate.given = model.given_frames();
  estimate.most = model.loss_frames();
  estimate.per_frame = many > few && high > low ? (high - low) / static_cast<uint64_t>(many - few)
                                                : high / static_cast<uint64_t>(frames_of_loss(estimate, many));
  const uint64_t kept = static_cast<uint64_t>(few - estimate.given) * estimate.per_frame,
                 scratch = low > kept ? low - kept : 0;
  estimate.fixed = learned_bytes(model, o) + std::max(scratch, largest_parameter(model));
  estimate.per_pair = model.pair_bytes();
  estimate.pixels = clip_bytes(clip) / static_cast<uint64_t>(std::max<int64_t>(clip.frames(), 1));
  {
    at::NoGradGuard no_grad;
    const models::LossContext context{.player = model.players().at(0).name};
    estimate.state = state_bytes(model.loss(data::frames_of(clip, 0, many), context).state);
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
  const int64_t whole = frames_of_loss(estimate, o.frames);
  if (total(0) <= budget) return 0;
  // Long chunks keep much for their gradients, short ones many states at their cuts: from the least of both upwards.
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
  const int64_t chunks = (whole + low - 1) / low, even = (whole + chunks - 1) / chunks;
  return total(even) <= budget ? even : low;
}

std::string check_memory(const MemoryEstimate& estimate, const TrainOptions& o, bool in_chunks, uint64_t available) {
  const uint64_t need = estimate.total(o);
  std::string text =
      fmt::format("a step takes about {}: {} for the model, {} per frame in memory ({} clips x {} frames)",
                  format_bytes(need), format_bytes(estimate.fixed), format_bytes(estimate.per_frame),
                  o.batch / o.accumulate, frames_at_once(estimate, o));
  if (const int64_t chunks = chunks_of(estimate, o); chunks > 1) text += fmt::format("; {} chunks of a clip", chunks);
  const uint64_t allowed = o.memory_bytes();
  const bool by_option = allowed > 0 && allowed < available;
  if (by_option) available = allowed;
  if (need <= available) return text;

  TrainOptions smaller = o;
  std::string advice;
  smaller.accumulate = o.batch;
  if (estimate.total(smaller) <= available) advice = fmt::format("train.accumulate={}", o.batch);
  while (advice.empty() && in_chunks && frames_at_once(estimate, smaller) > 1) {
    smaller.chunk_frames = frames_at_once(estimate, smaller) / 2;
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
