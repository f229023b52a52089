// Scores in units of one forecaster of fields, as sums over clips for every lead time and variable: memory does not grow with
// the number of clips.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/evaluate/skill_options.h"
#include "convssm/metrics/ensemble.h"
#include "convssm/metrics/events.h"
#include "convssm/metrics/field_errors.h"

namespace convssm::evaluate {

// A batch of truth [B,N,C,H,W], float64 in units.
struct FieldBatch {
  at::Tensor truth;
  at::Tensor weights;      // of the pixels
  at::Tensor usual = {};   // the climatology; undefined: there is none
  int64_t first_clip = 0;  // the number of the first clip of the batch
};

// Root of the mean squared error of each pixel at the last lead time, [H,W] for each variable; NaN where never measured.
using ErrorMaps = std::vector<at::Tensor>;

class FieldScores {
 public:
  // `fields` must outlive it. `seed` is that of ties in ranks.
  FieldScores(std::string name, const Fields& fields, int64_t frames, uint64_t seed);

  // One future of each clip or several, [B,N,C,H,W] in units each. Of several each counts as a forecast, and all as an
  // ensemble.
  void add(const FieldBatch& batch, const std::vector<at::Tensor>& futures);

  const std::string& name() const { return name_; }

  // {"rmse", "mae", "bias", "acc", "events": [{"threshold", "csi", "pod", "far", "frequency_bias", "fss": {"3": ...}}], "crps",
  // "crps_fair", "spread", "rmse_of_mean", "spread_skill", "rank_histogram"} of a variable over lead times [begin, end); what is not
  // known is missing, what is no number is null.
  nlohmann::json scores(size_t variable, int64_t begin, int64_t end) const;

  ErrorMaps error_maps() const;

 private:
  struct Event {
    metrics::EventCounts counts;                   // [N]
    std::vector<metrics::FractionSums> fractions;  // for each window: [N]
  };
  void add_events(const FieldBatch& batch, const at::Tensor& forecast);
  void add_ensemble(const FieldBatch& batch, const std::vector<at::Tensor>& futures);

  std::string name_;
  const Fields* fields_;
  uint64_t seed_;
  metrics::FieldErrors errors_;             // [N,C]
  at::Tensor correlations_, correlated_;    // [N,C]: sum over fields of the coefficient, and how many have one
  std::vector<std::vector<Event>> events_;  // of each variable, of each of its thresholds
  metrics::EnsembleSums ensemble_;          // [N,C]
  at::Tensor map_squared_, map_weight_;     // [C,H,W] of the last lead time
};

}  // namespace convssm::evaluate
