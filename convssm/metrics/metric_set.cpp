// A metric that was asked for by name and cannot be had is an error; by default it is left out, with a line that says
// why. The checksums of the weights go into the description: numbers of other weights do not compare.
#include "convssm/metrics/metric_set.h"

#include <fmt/format.h>

#include "convssm/base/error.h"

namespace convssm::metrics {
MetricSet::MetricSet(const std::vector<std::string>& names, const WeightFolder& weights, const ClipSize& size,
                     const I3dOptions& i3d) {
  for (const std::string& name : names) {
    const MetricInfo& info = find_metric(name);
    if (const std::string why = objection(info, size); !why.empty()) fail(ErrorKind::usage, "[{}] {}", name, why);
    add(info, weights, i3d);
  }
  if (!names.empty()) return;
  for (const MetricInfo& info : all_metrics()) {
    if (info.by_name) continue;
    if (const std::string why = objection(info, size); !why.empty()) {
      left_out_.push_back(fmt::format("{}: {}", info.name, why));
    } else if (const auto missing = missing_weights(info, weights); !missing.empty()) {
      left_out_.push_back(fmt::format("{}: its weights '{}' are not in {} (see convssm weights)", info.name, missing[0],
                                      weights.folder()));
    } else {
      add(info, weights, i3d);
    }
  }
}

void MetricSet::add(const MetricInfo& info, const WeightFolder& weights, const I3dOptions& i3d) {
  if (description_.contains(info.name)) return;
  if (info.make) {
    entries_.push_back({&info, info.make(weights)});
  } else {
    i3d_ = std::make_shared<const I3d>(weights.existing(info.weights.at(0)), i3d);
  }
  nlohmann::json& about = description_[info.name];
  about = {{"definition", info.definition}, {"input", info.input}, {"reference", info.reference}};
  for (const std::string& name : info.weights) about["weights"][name] = weights.checksum(name);
}

}  // namespace convssm::metrics
