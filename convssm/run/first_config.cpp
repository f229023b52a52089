// Sizes follow from the frames, lengths from the shortest clip of each split, and the number of steps from the arithmetic of
// the model, so that it takes minutes on two cores. What is chosen is a first try and not a result.
#include "convssm/run/first_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/io/yaml.h"
#include "convssm/models/flops.h"
#include "convssm/models/registry.h"
#include "convssm/run/config.h"

namespace convssm::run {
namespace {

using data::Split;

constexpr int64_t kLatent = 16;           // pixels of the core, at most on a side
constexpr double kFlopsPerSecond = 6e10;  // of two cores that train such models
constexpr int64_t kWindows = 16;          // test clips or windows of them, at least
constexpr double kSeconds = 150;          // of training, on them

// Channels of each resolution, the last of which is the core's. Large frames are thin where they are large.
std::vector<int64_t> depths_for(const data::FrameFormat& format) {
  int64_t side = std::max(format.height, format.width);
  std::vector<int64_t> depths{side > 64 ? 8 : 16};
  for (; side > kLatent; side = (side + 1) / 2) depths.push_back(std::min<int64_t>(64, 2 * depths.back()));
  if (depths.size() == 1) depths[0] = 32;
  return depths;
}

std::string model_yaml(const data::Dataset& dataset, bool missing) {
  const auto depths = depths_for(dataset.format());
  const std::string coder = fmt::format("{{depths: [{}], groups: 8}}", fmt::join(depths, ", "));
  const data::ActionFormat actions = dataset.actions();
  std::string yaml = fmt::format("model:\n  encoder: {0}\n  decoder: {0}\n", coder);
  yaml += "  core: {name: convs5, features: 32, state_size: 32, layers: 2, dt_min: 0.02, dt_max: 1.0}\n";
  yaml += "  loss_weight: 1.0      # squared error alone, which a short training does better with\n";
  if (missing) yaml += "  mask_input: true      # the model sees which pixels were measured\n";
  if (actions.maps > 0) {
    yaml += fmt::format("  actions: 0\n  action_maps: {}        # known in advance of each frame, data.forcings\n",
                        actions.maps);
  } else if (actions.values > 0) {
    yaml += fmt::format("  actions: 0\n  action_values: {}      # numbers of an action\n  action_features: 8\n",
                        actions.values);
  } else if (actions.count > 0) {
    yaml += fmt::format("  actions: {}            # action k leads to frame k\n  action_features: 8\n", actions.count);
  }
  return yaml;
}

// What a training takes: batch and frames shrink where frames are large, before the steps become too few.
struct Plan {
  int64_t steps = 1000, batch = 2, frames = 30;
  double seconds = 0;
};

Plan plan_for(double flops, int64_t longest) {
  Plan plan;
  plan.frames = std::min(plan.frames, longest);
  // Four passes: forward, backward twice as long, and one for self_feed.
  const auto step_seconds = [&] { return 4 * flops * static_cast<double>(plan.batch * plan.frames) / kFlopsPerSecond; };
  while (200 * step_seconds() > kSeconds && (plan.batch > 1 || plan.frames > 8)) {
    if (plan.batch > 1) {
      plan.batch /= 2;
    } else {
      plan.frames = std::max<int64_t>(8, plan.frames / 2);
    }
  }
  plan.steps = std::clamp<int64_t>(static_cast<int64_t>(kSeconds / step_seconds()) / 100 * 100, 200, 1000);
  plan.seconds = static_cast<double>(plan.steps) * step_seconds();
  return plan;
}

std::string train_yaml(const Plan& plan, const data::Dataset& dataset) {
  const int64_t part = plan.steps / 4;
  std::string yaml = fmt::format(
      "train:                  # by its arithmetic about {:.0f} minutes on two cores\n"
      "  steps: {}\n  batch: {}\n  frames: {}            # of a clip\n  lr: 3e-3\n"
      "  self_feed: 0.5        # half of the frames as it forecasts them, so that it learns to go on by itself\n"
      "  log_interval: 10\n  save_interval: {}\n",
      std::max(1.0, plan.seconds / 60), plan.steps, plan.batch, plan.frames, part);
  const int64_t seen = dataset.size(Split::valid) > 0 ? std::min(dataset.longest(Split::valid), 2 * plan.frames) : 0;
  if (seen < 2) return yaml + "  sample_interval: 0    # there are no clips for validation that are long enough\n";
  const int64_t context = std::max<int64_t>(1, seen / 3);
  return yaml + fmt::format("  sample_interval: {}\n  sample_clips: 4\n  sample_context: {}\n  sample_frames: {}\n",
                            part, context, seen - context);
}

std::string evaluate_yaml(const Plan& plan, const data::Dataset& dataset) {
  const auto clips = static_cast<int64_t>(std::min<uint64_t>(kWindows, dataset.size(Split::test)));
  const int64_t there = clips > 0 ? dataset.longest(Split::test) : 0, seen = std::min(there, 2 * plan.frames);
  if (seen < 2) return "# evaluate: there are no test clips of two frames or more\n";
  const int64_t context = std::max<int64_t>(1, std::min(plan.frames / 3, seen / 3)), ahead = seen - context;
  const std::string half = ahead >= 4 ? fmt::format("{}, ", ahead / 2) : "";
  std::string yaml = fmt::format(
      "evaluate:\n  context: {}            # frames seen\n  horizons: [{}{}]   # frames generated after them\n"
      "  samples: 64\n  chunk: 16\n",
      context, half, ahead);
  if (clips * (there / seen) >= kWindows || there == seen) return yaml;
  const int64_t stride = std::max<int64_t>(1, (there - seen) * clips / kWindows);
  return yaml + fmt::format("  stride: {}             # few clips: windows of them that overlap\n", stride);
}

}  // namespace

std::string first_config(const std::string& data_yaml, bool missing) {
  nlohmann::json sections = io::parse_yaml(data_yaml, "the section data");
  const auto dataset = data::make_dataset(sections.at("data"), 1);
  const std::string model = model_yaml(*dataset, missing);
  const auto made = models::make_model(io::parse_yaml(model, "the section model").at("model"), dataset->format());
  const auto flops = static_cast<double>(models::flops_per_frame(*made, dataset->format()));
  const Plan plan = plan_for(flops, dataset->longest(Split::train));
  return model + data_yaml + train_yaml(plan, *dataset) + evaluate_yaml(plan, *dataset);
}

}  // namespace convssm::run
