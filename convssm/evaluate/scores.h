// Scores of one forecaster, gathered clip by clip: for every metric a value per clip, future and generated frame. Of several
// futures of a clip their mean counts, and beside it the best one, chosen for each clip and metric.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/metrics/measured.h"
#include "convssm/metrics/metric_set.h"

namespace convssm::evaluate {

using metrics::as_frames;
using metrics::Frames;
using metrics::Measured;

// Values of every metric for each of those frames: [B,N].
struct FrameScores {
  std::map<std::string, at::Tensor> values;
  int64_t identical =
      0;  // frames whose PSNR is infinite, as 8-bit numbers if they are: they count with the largest one
};

// Where not all of truth was measured, the forecast has to hold the truth's pixels elsewhere (metrics/measured.h).
FrameScores score_frames(const metrics::MetricSet& metrics, const Frames& truth, const Frames& forecast);

// Parts of the same clips that follow each other in time.
FrameScores join_frames(const std::vector<FrameScores>& parts);

class Scores {
 public:
  // `metrics` must outlive it.
  Scores(std::string name, const metrics::MetricSet& metrics) : name_(std::move(name)), metrics_(&metrics) {}

  // Frames whose values are NaN count nowhere. A batch of clips, with one future or several of each: always the same number.
  void add(const FrameScores& clips) { add(std::vector<FrameScores>{clips}); }
  void add(const std::vector<FrameScores>& futures);

  // {"name", "psnr_f01": {"mean", "std"}, ...} over the first `frames` generated frames, of several futures also "best" and
  // "best_std"; of one chunk, or without `spread`, there are no deviations.
  nlohmann::json row(int64_t frames, int64_t chunk, bool spread = true) const;

  // The same over those of them that `counted` [clips,N] bool marks, without deviations; null if it marks none.
  nlohmann::json row_of(int64_t frames, const at::Tensor& counted) const;

  std::vector<double> curve(const std::string& metric) const;     // the mean over clips and futures for every frame
  std::vector<double> per_clip(const std::string& metric) const;  // the mean over frames and futures for every clip

  const std::string& name() const { return name_; }
  std::vector<std::string> metrics() const;
  int64_t identical_frames() const { return identical_; }

 private:
  std::string name_;
  const metrics::MetricSet* metrics_;
  std::map<std::string, std::vector<at::Tensor>> values_;  // per metric: [B,futures,N] of each batch
  int64_t identical_ = 0;
};

}  // namespace convssm::evaluate
