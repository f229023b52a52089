// The parts of the timing study: what it gathers, and its two halves on one batch of clips.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/evaluate/scores.h"
#include "convssm/evaluate/timing_study.h"
#include "convssm/metrics/metric_set.h"
#include "convssm/models/forecaster.h"

namespace convssm::evaluate {

constexpr int64_t kGrid = 4;  // frames of the fine clips in one training interval
constexpr std::array<int64_t, 6> kStrides = {1, 2, 3, 4, 6, 8};
constexpr std::array<double, 7> kDropProbabilities = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
static_assert(kStrides.size() + kDropProbabilities.size() == kTimingPoints);

// Frames of fine clips: the longest look ahead is one stride beyond the end.
constexpr int64_t fine_frames(int64_t intervals) { return kGrid * intervals + kStrides.back(); }

// Scores of several kinds of forecasts at several points, clip by clip.
class TimingLines {
 public:
  TimingLines(std::vector<std::string> names, size_t points);

  // Scores [B,N] of a batch; only frames that are `counted` ([B,N] bool; undefined: all) enter. A clip without one is
  // left out.
  void add(size_t line, size_t point, const FrameScores& scores, const at::Tensor& counted);
  void append(const TimingLines& later);
  nlohmann::json to_json() const;

 private:
  struct Cell {
    std::map<std::string, std::vector<double>> clips;  // per metric: the mean of each clip
    int64_t identical = 0;
  };
  Cell& cell(size_t line, size_t point) { return cells_[line * points_ + point]; }
  const Cell& cell(size_t line, size_t point) const { return cells_[line * points_ + point]; }

  std::vector<std::string> names_;
  size_t points_;
  std::vector<Cell> cells_;
};

// What both halves need, and whether to go on, asked after each point.
struct TimingJob {
  models::Forecaster& model;
  const TimingOptions& options;
  const metrics::MetricSet& metrics;
  std::function<bool()> go_on;
};

TimingLines rate_lines();
TimingLines dropped_lines();

// video [B,fine_frames(intervals),C,H,W] of fine clips. False if it was not to go on.
bool add_rates(TimingLines& lines, const TimingJob& job, const at::Tensor& video);

// video [B,intervals+1,C,H,W]; `first` is the number of its first clip.
bool add_dropped(TimingLines& lines, const TimingJob& job, const at::Tensor& video, int64_t first);

// Which frames of a clip remain, [frames] bool; the first always does. What remains at one probability remains at all
// lower ones.
at::Tensor kept_frames(uint64_t seed, int64_t clip, double probability, int64_t frames);

}  // namespace convssm::evaluate
