#include "convssm/train/preflight.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/ops/allocator.h"
#include "convssm/train/memory_estimate.h"

namespace convssm::train {

void check_clips(const TrainOptions& o, const data::Dataset& dataset) {
  const auto check = [&](data::Split split, int64_t frames, const char* key) {
    if (dataset.size(split) == 0) fail(ErrorKind::data, "the dataset has no {} clips", data::name(split));
    if (dataset.longest(split) >= frames) return;
    fail(ErrorKind::usage, "[train] {} asks for clips of {} frames, the {} clips have {}; set it to less", key, frames,
         data::name(split), dataset.longest(split));
  };
  check(data::Split::train, o.frames, "frames");
  if (o.sample_interval > 0) {
    check(data::Split::test, o.sample_context + o.sample_frames, "sample_context + sample_frames");
  }
}

void check_actions(const nlohmann::json& model, const data::Dataset& dataset) {
  const nlohmann::json actions = model.value("actions", nlohmann::json(1));
  if (!actions.is_number_integer() || actions == 0 || actions >= dataset.action_count()) return;
  fail(ErrorKind::usage, "the data has {} actions, the model {}; set model.actions={} (or 0 to leave them out)",
       dataset.action_count(), actions.dump(), dataset.action_count());
}

namespace {

// What keeps a clip from being trained on in pieces; "" if nothing does.
std::string obstacle_to_pieces(const Config& config, const models::Model& model) {
  if (!model.constant_state()) {
    return "chunk_frames needs a core whose state does not grow; expected chunk_frames: 0, or a transformer with a "
           "window";
  }
  const nlohmann::json dropout =
      config.model.value("core", nlohmann::json::object()).value("dropout", nlohmann::json(0));
  if (dropout == 0) return "";
  return fmt::format("chunk_frames runs every piece twice, so dropout must be 0, got {}", dropout.dump());
}

int64_t choose(const MemoryEstimate& estimate, const TrainOptions& o, uint64_t available) {
  const uint64_t budget = o.memory_bytes() > 0 ? std::min(o.memory_bytes(), available) : available / 3 * 2;
  const int64_t chunk = choose_chunk(estimate, o, budget);
  if (chunk > 0)
    log_info("memory: clips are run in pieces of {} frames, to stay within {}", chunk, format_bytes(budget));
  return chunk;
}

}  // namespace

int64_t plan_step(const Config& config, models::Model& model, const data::FrameFormat& frames, uint64_t program,
                  int64_t before) {
  TrainOptions o = config.train;
  const std::string obstacle = obstacle_to_pieces(config, model);
  if (o.chunk_frames > 0 && !obstacle.empty()) fail(ErrorKind::usage, "[train] {}", obstacle);
  MemoryEstimate estimate = estimate_memory(model, frames.channels, frames.height, frames.width, o.recompute);
  estimate.program = program;
  ops::release_cached_memory();
  const uint64_t available = available_memory() + current_rss();
  if (o.chunk_frames == kAutomatic) o.chunk_frames = before;
  if (o.chunk_frames == kAutomatic) o.chunk_frames = obstacle.empty() ? choose(estimate, o, available) : 0;
  log_info("memory: {}", check_memory(estimate, o, obstacle.empty(), available));
  return o.chunk_frames;
}

}  // namespace convssm::train
