// With k times the features a step keeps k times as much of each frame, and parameters with their gradients and moments k * k times.
#include "convssm/run/memory_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/base/memory.h"
#include "convssm/data/dataset.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/train/memory_estimate.h"

namespace convssm::run {
namespace {

uint64_t with_features(train::MemoryEstimate estimate, uint64_t times, const train::TrainOptions& options) {
  estimate.fixed *= times * times;
  estimate.per_frame *= times, estimate.state *= times;
  return estimate.total(options);
}

}  // namespace

std::string memory_outlook(const std::string& config) {
  const nlohmann::json sections = io::parse_yaml(config, "the config");
  const auto dataset = data::make_dataset(sections.at("data"), 1);
  if (dataset->size(data::Split::train) == 0) return "";
  const auto options = train::TrainOptions::from_json(sections.at("train"));
  const auto model = models::make_model(sections.at("model"), dataset->format());
  const int64_t frames = std::min({model->telling_frames(), options.frames, dataset->longest(data::Split::train)});
  if (frames < 2) return "";
  const auto estimate = train::estimate_memory(*model, dataset->clip(data::Split::train, 0, frames), options);
  const uint64_t available = available_memory();
  uint64_t times = 1;
  while (times < 32 && with_features(estimate, 2 * times, options) <= available) times *= 2;
  const uint64_t most = with_features(estimate, times, options);
  std::string text = fmt::format("a training of this config takes about {} of the {} that are available",
                                 format_bytes(estimate.total(options)), format_bytes(available));
  if (times == 1) return text + (most > available ? "; take fewer features or frames" : "");
  return text + fmt::format("; with {} times the features it would be {}", times, format_bytes(most));
}

}  // namespace convssm::run
