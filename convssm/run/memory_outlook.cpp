// With k times the features a step keeps k times as much of each frame, and parameters with their gradients and moments k * k times.
#include "convssm/run/memory_outlook.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/base/memory.h"
#include "convssm/data/dataset.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/run/data_memory.h"
#include "convssm/train/memory_estimate.h"

namespace convssm::run {
namespace {

uint64_t with_features(train::MemoryEstimate estimate, uint64_t times, const train::TrainOptions& options) {
  estimate.fixed *= times * times;
  estimate.per_frame *= times, estimate.state *= times;
  return estimate.total(options);
}

// As its clips are, without reading any: their first frames may be damaged, and a video would be decoded.
data::Clips blank_clip(const data::Dataset& dataset, int64_t frames) {
  const data::FrameFormat format = dataset.format();
  const data::ActionFormat actions = dataset.actions();
  data::Clips clip;
  clip.video = at::zeros({1, frames, format.depth(), format.height, format.width});
  clip.valid = at::ones(clip.video.sizes(), at::kBool);
  if (actions.maps > 0) {
    clip.actions = at::zeros({1, frames, actions.maps, format.height, format.width});
  } else if (actions.values > 0) {
    clip.actions = at::zeros({1, frames, actions.values});
  } else if (actions.count > 0) {
    clip.actions = at::zeros({1, frames}, at::kLong);
  }
  return clip;
}

}  // namespace

std::string memory_outlook(const std::string& config) {
  const nlohmann::json sections = io::parse_yaml(config, "the config");
  const DataMemory data;
  const auto dataset = data::make_dataset(sections.at("data"), 1);
  const uint64_t held = data.held();
  if (dataset->size(data::Split::train) == 0) return "";
  const auto options = train::TrainOptions::from_json(sections.at("train"));
  const auto model = models::make_model(sections.at("model"), dataset->format());
  const int64_t frames = std::min({model->telling_frames(), options.frames, dataset->longest(data::Split::train)});
  if (frames < 2) return "";
  auto estimate = train::estimate_memory(*model, blank_clip(*dataset, frames), options);
  estimate.program = held;
  const uint64_t available = available_memory();
  uint64_t times = 1;
  while (times < 32 && with_features(estimate, 2 * times, options) <= available) times *= 2;
  const uint64_t most = with_features(estimate, times, options);
  std::string text = fmt::format(
      "a training of this config takes about {} of the {} that are available, {} of it for the program and its data",
      format_bytes(estimate.total(options)), format_bytes(available), format_bytes(held));
  if (times == 1) return text + (most > available ? "; take fewer features or frames" : "");
  return text + fmt::format("; with {} times the features it would be {}", times, format_bytes(most));
}

}  // namespace convssm::run
