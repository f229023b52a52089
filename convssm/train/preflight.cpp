// The checks before a training, in the order in which a user would meet them.
#include "convssm/train/preflight.h"

#include <algorithm>
#include <map>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/base/nearest.h"
#include "convssm/data/walk.h"
#include "convssm/ops/allocator.h"
#include "convssm/train/memory_estimate.h"
#include "convssm/train/optimizer.h"

namespace convssm::train {

void check_data(TrainOptions& o, const data::Dataset& dataset, models::Model& model) {
  const auto check = [&](data::Split split, int64_t frames, const char* key) {
    if (dataset.size(split) == 0) fail(ErrorKind::data, "the dataset has no {} clips", data::name(split));
    if (dataset.longest(split) >= frames) return;
    const std::string which = dataset.short_clips(split, frames);
    fail(ErrorKind::usage, "[train] {} asks for clips of {} frames, the {} clips have {}; set it to less{}", key,
         frames, data::name(split), dataset.longest(split), which.empty() ? "" : ". " + which);
  };
  check(data::Split::train, o.frames, "frames");
  model.check_data(data::format_of(dataset));
  model.check_length(o.frames);
  if (o.sample_interval == 0) return;
  if (dataset.size(data::Split::valid) == 0) {
    log_warning("the dataset has no valid clips: training takes no samples");
    o.sample_interval = 0;
    return;
  }
  if (model.as_forecaster() == nullptr) {  // no context: what it sees is what it shows
    return check(data::Split::valid, o.sample_frames, "sample_frames");
  }
  if (o.frames == 1 && dataset.longest(data::Split::valid) == 1) {
    log_warning("the valid clips have one frame, samples need a context before it: training takes none");
    o.sample_interval = 0;
    return;
  }
  check(data::Split::valid, o.sample_context + o.sample_frames, "sample_context + sample_frames");
}

void check_carrying(const TrainOptions& o, const data::Dataset& dataset, const models::Model& model, uint64_t seed) {
  const std::string obstacle = model.obstacle_to_carrying();
  if (!obstacle.empty()) fail(ErrorKind::usage, "[train] carry_state cannot be used with this model: {}", obstacle);
  const data::Walk walk(dataset, data::Split::train, seed, o.batch, o.frames);
  log_info("train.carry_state: {} windows of {} frames, {} in a row for each of {} rows", walk.windows(), o.frames,
           walk.steps(), o.batch);
  if (walk.steps() > 1) return;
  log_warning(
      "train.carry_state: there is a row for every window, so nothing is carried; take a smaller train.batch or "
      "train.frames");
}

void check_players(const TrainOptions& options, const std::vector<models::Player>& players) {
  std::vector<std::string> names;
  std::map<const void*, std::string> owners;
  bool from_the_start = false;
  for (const models::Player& player : players) {
    names.push_back(player.name);
    from_the_start = from_the_start || options_of(player, options).start == 0;
    for (const auto& [name, parameter] : player.parameters) {
      const auto [found, fresh] = owners.emplace(parameter.unsafeGetTensorImpl(), player.name);
      if (fresh) continue;
      fail(ErrorKind::usage, "the parameter '{}' belongs to two players, '{}' and '{}'", name, found->second,
           player.name);
    }
  }
  for (const auto& [name, own] : options.players) {
    if (std::ranges::find(names, name) == names.end()) fail_unknown("[train] players: unknown player", name, names);
  }
  if (!from_the_start) fail(ErrorKind::usage, "[train] no player learns from the first step; set start: 0 for one");
}

namespace {

int64_t choose(const MemoryEstimate& estimate, const TrainOptions& o, uint64_t available) {
  const uint64_t budget = o.memory_bytes() > 0 ? std::min(o.memory_bytes(), available) : available / 3 * 2;
  const int64_t chunk = choose_chunk(estimate, o, budget);
  if (chunk > 0)
    log_info("memory: clips are run in chunks of {} frames, to stay within {}", chunk, format_bytes(budget));
  return chunk;
}

}  // namespace

int64_t plan_step(const TrainOptions& options, models::Model& model, const data::Dataset& dataset, uint64_t program,
                  int64_t before) {
  TrainOptions o = options;
  const std::string obstacle = model.obstacle_to_chunks();
  if (o.chunk_frames > 0 && !obstacle.empty())
    fail(ErrorKind::usage, "[train] chunk_frames cannot be used with this model: {}", obstacle);
  const at::Device device = models::device_of(model);
  if (!device.is_cpu()) {
    const int64_t chunk = o.chunk_frames == kAutomatic ? std::max<int64_t>(before, 0) : o.chunk_frames;
    log_info(
        "memory: not estimated on {}; {}. If it does not suffice, set train.chunk_frames, train.accumulate or "
        "train.recompute",
        device.str(), chunk > 0 ? fmt::format("clips are run in chunks of {} frames", chunk) : "clips are run whole");
    return chunk;
  }
  const data::Clips clip = dataset.clip(data::Split::train, 0, std::min(model.telling_frames(), o.frames));
  MemoryEstimate estimate = estimate_memory(model, clip, o);
  estimate.program = program;
  ops::release_cached_memory();
  const uint64_t available = available_memory() + current_rss();
  if (o.chunk_frames == kAutomatic) o.chunk_frames = before;
  if (o.chunk_frames == kAutomatic) o.chunk_frames = obstacle.empty() ? choose(estimate, o, available) : 0;
  log_info("memory: {}", check_memory(estimate, o, obstacle.empty(), available));
  return o.chunk_frames;
}

}  // namespace convssm::train
