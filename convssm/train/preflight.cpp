#include "convssm/train/preflight.h"

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
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

void check_step(const Config& config, models::Model& model, const data::FrameFormat& frames) {
  const nlohmann::json core = config.model.value("core", nlohmann::json::object());
  if (config.train.chunk_frames > 0 && !model.constant_state()) {
    fail(ErrorKind::usage,
         "[train] chunk_frames needs a core whose state does not grow; expected chunk_frames: 0, or a "
         "transformer with a window");
  }
  if (config.train.chunk_frames > 0 && core.value("dropout", 0.0) > 0) {
    fail(ErrorKind::usage, "[train] chunk_frames runs every piece twice, so dropout must be 0, got {}",
         core["dropout"].dump());
  }
  const MemoryEstimate estimate = estimate_memory(model, frames.channels, frames.height, frames.width);
  const uint64_t available = available_memory() + current_rss();
  log_info("memory: {}", check_memory(estimate, config.train, model.constant_state(), available));
}

}  // namespace convssm::train
