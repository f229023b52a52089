#include "convssm/metrics/metric_set.h"

#include <fmt/format.h>

#include "convssm/base/error.h"

namespace convssm::metrics {
namespace {

// The first of the weights that is missing, "" if none is.
std::string missing(const MetricInfo& info, const WeightFolder& weights) {
  for (const std::string& name : info.weights) {
    if (!weights.has(name)) return name;
  }
  return "";
}

}  // namespace

MetricSet::MetricSet(const std::vector<std::string>& names, const WeightFolder& weights, const ClipSize& size) {
  for (const std::string& name : names) {
    const MetricInfo& info = find_metric(name);
    if (const std::string why = objection(info, size); !why.empty()) fail(ErrorKind::usage, "[{}] {}", name, why);
    add(info, weights);
  }
  if (!names.empty()) return;
  for (const MetricInfo& info : all_metrics()) {
    if (const std::string why = objection(info, size); !why.empty()) {
      left_out_.push_back(fmt::format("{}: {}", info.name, why));
    } else if (const std::string name = missing(info, weights); !name.empty()) {
      left_out_.push_back(fmt::format("{}: its weights '{}' are not in {}", info.name, name, weights.folder()));
    } else {
      add(info, weights);
    }
  }
}

void MetricSet::add(const MetricInfo& info, const WeightFolder& weights) {
  if (description_.contains(info.name)) return;
  if (info.make) {
    entries_.push_back({&info, info.make(weights)});
  } else {
    i3d_ = std::make_shared<const I3d>(weights.existing(info.weights.at(0)));
  }
  nlohmann::json& about = description_[info.name];
  about = {{"definition", info.definition}, {"input", info.input}, {"reference", info.reference}};
  for (const std::string& name : info.weights) about["weights"][name] = weights.checksum(name);
}

}  // namespace convssm::metrics
