// One setting, clip by clip, so that memory does not grow with the number of clips; the model and the forecasts without one
// see the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/references.h"
#include "convssm/evaluate/windows.h"

namespace convssm::evaluate {

// A model and how many futures of each clip it makes.
struct Member {
  models::Model* model;
  int64_t futures = 1;
};

// What all settings share.
struct EvaluationJob {
  models::Model& model;  // the first of the members
  const data::Dataset& dataset;
  const EvaluateOptions& options;
  const Truth& truth;
  const std::vector<Window>& windows;
  std::string name;
  generate::PredictorOptions engine;
  std::vector<Member> members;
  const References& references;
  const Fields* fields;  // in whose units forecasts are scored; null: they are not
};

struct SettingResult {
  // {"samples", "clips", "identical_frames", "engine", "horizons", "curves", "skill" of fields, and "actions" if there are any}
  nlohmann::json json;
  data::Comparison clips;
  std::vector<VariableMaps> error_maps;
};

// `progress(done)` is told the clips done; a false ends it after that batch, with the clips so far.
SettingResult run_setting(const EvaluationJob& job, const Setting& setting, const metrics::MetricSet& metrics,
                          const std::function<bool(int64_t)>& progress);

}  // namespace convssm::evaluate
