// Scores samples of any project against their truth: two streams of clips, every metric that applies, per frame, per clip
// and overall, in the memory of one clip.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/data/clip_reader.h"
#include "convssm/metrics/metric_set.h"

namespace convssm::evaluate {

struct CompareOptions {
  int64_t context = 0;            // the first frames, which were given: left out of the metrics of frames
  int64_t chunk = 256;            // the spread is that between the means of this many clips
  std::string name = "forecast";  // in the table
};

// Error(data) unless both have the same number of clips of the same size; of two folders, of the same names.
void check_alike(const data::ClipReader& truth, const data::ClipReader& forecast);

// What the metrics have to fit.
metrics::ClipSize clip_size(const data::ClipReader& truth, const data::ClipReader& forecast);

// {"protocol", "horizons", "curves"} as of an evaluation, with one horizon, and "clips": the values of each clip.
// `progress(done)` is told the clips done; a false ends it with the clips so far.
nlohmann::json compare(data::ClipReader& truth, data::ClipReader& forecast, const metrics::MetricSet& metrics,
                       const CompareOptions& options, const std::function<bool(int64_t)>& progress = {});

}  // namespace convssm::evaluate
