// The metrics of one evaluation, ready to use: those that are asked for, or all that fit the frames and whose weights
// are at hand.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/metrics/i3d.h"
#include "convssm/metrics/registry.h"

namespace convssm::metrics {

class MetricSet {
 public:
  struct Entry {
    const MetricInfo* info;
    FrameMetric metric;
  };

  // `names` empty: all but those that are only had by name. A named metric that cannot be had is an error, Error(data) with
  // the steps to get its weights or Error(usage) with the objection to the frames; of all, it is left out.
  MetricSet(const std::vector<std::string>& names, const WeightFolder& weights, const ClipSize& size,
            const I3dOptions& i3d = {});

  const std::vector<Entry>& frame_metrics() const { return entries_; }
  const I3d* i3d() const { return i3d_.get(); }  // null: without fvd_i3d

  // "lpips_alex: why", a line for each metric that was left out.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // {"psnr_f01": {"definition", "input", "reference", "weights": {"squeezenet": checksum}}, ...}
  const nlohmann::json& description() const { return description_; }

 private:
  void add(const MetricInfo& info, const WeightFolder& weights, const I3dOptions& i3d);

  std::vector<Entry> entries_;
  std::shared_ptr<const I3d> i3d_;
  std::vector<std::string> left_out_;
  nlohmann::json description_ = nlohmann::json::object();
};

}  // namespace convssm::metrics
