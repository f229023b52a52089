// Forecasts of the same clips against one truth, gathered clip by clip: frames by their metrics, whole clips by FVD.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convssm/evaluate/fvd_scores.h"
#include "convssm/evaluate/scores.h"
#include "convssm/evaluate/setting.h"

namespace convssm::evaluate {

// Forecasts [B,N,C,H,W] of a batch of clips. Of several futures the first is kept whole, for FVD; the others are scored when
// they are made, so that memory does not grow with their number.
struct Forecast {
  Frames first;
  std::vector<FrameScores> others = {};
};

class Contest {
 public:
  // `metrics` must outlive it.
  Contest(const std::vector<std::string>& names, const Setting& setting, const metrics::MetricSet& metrics,
          int64_t chunk);

  // A batch: the frames seen, those that followed, and the forecasts of them in the order of the names. FVD sees clips from
  // their first frame, and in all of them the frames that were seen are the true ones.
  void add(const Frames& context, const Frames& truth, const std::vector<Forecast>& forecasts);

  // A row for each name over the horizon number `h`; without `spread` no "std".
  nlohmann::json rows(size_t h, bool spread) const;

  const std::vector<Scores>& scores() const { return scores_; }

 private:
  const metrics::MetricSet* metrics_;
  std::vector<int64_t> horizons_;
  int64_t chunk_;
  std::vector<Scores> scores_;
  std::optional<FvdScores> fvd_;
};

}  // namespace convssm::evaluate
