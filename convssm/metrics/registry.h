// All metrics by name. A name carries the convention: two programs that report the same name report the same number.
//   FrameMetric ssim = find_metric("ssim_gauss11").make({});   at::Tensor values = ssim(truth, forecast);
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "convssm/metrics/weights.h"

namespace convssm::metrics {

// truth, forecast [...,C,H,W] -> [...] float64, one value per frame.
using FrameMetric = std::function<at::Tensor(const at::Tensor& truth, const at::Tensor& forecast)>;

struct MetricInfo {
  std::string name;
  std::string definition;                                // one line
  std::string input;                                     // the values it takes, and the smallest frames
  std::string reference;                                 // who computes it so
  int better = 0;                                        // +1: more is better, -1: less is
  int digits = 3;                                        // in tables
  int64_t smallest_side = 1;                             // of a frame
  int64_t fewest_frames = 1;                             // of a clip
  bool pictures = false;                                 // 1 or 3 channels only
  bool bytes = false;                                    // takes uint8 instead of float32 in [0,1]
  bool uncut = false;                                    // takes frames that were never cut to 8 bits
  bool by_name = false;                                  // only where it is asked for
  std::vector<std::string> weights;                      // names of metrics/weights.h
  std::function<FrameMetric(const WeightFolder&)> make;  // empty for a metric of whole sets of clips
};

const std::vector<MetricInfo>& all_metrics();

// Error(usage) that names the nearest if there is none of this name.
const MetricInfo& find_metric(const std::string& name);

struct ClipSize {
  int64_t frames = 1, channels = 1, height = 0, width = 0;
  bool bytes = true;  // pixels are 8-bit numbers
};

// Names of its weights that are not in the folder.
std::vector<std::string> missing_weights(const MetricInfo& metric, const WeightFolder& folder);

// Why clips of this size cannot be scored by it; "" if they can.
std::string objection(const MetricInfo& metric, const ClipSize& size);

}  // namespace convssm::metrics
