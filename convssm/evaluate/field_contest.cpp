#include "convssm/evaluate/field_contest.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "convssm/metrics/field_weights.h"

namespace convssm::evaluate {
namespace {

// {"rmse": 1.2, ..., "csi@0.1": 0.4, "fss@0.1/3px": 0.6}: the single numbers of the scores of a variable.
nlohmann::json flat_scores(const nlohmann::json& scores) {
  nlohmann::json flat = nlohmann::json::object();
  for (const auto& [key, value] : scores.items()) {
    if (!value.is_array()) flat[key] = value;
  }
  if (!scores.contains("events")) return flat;
  for (const nlohmann::json& event : scores["events"]) {
    const auto threshold = event["threshold"].get<double>();
    for (const char* key : {"csi", "pod", "far", "frequency_bias"})
      flat[fmt::format("{}@{}", key, threshold)] = event[key];
    if (!event.contains("fss")) continue;
    for (const auto& [window, value] : event["fss"].items())
      flat[fmt::format("fss@{}/{}px", threshold, window)] = value;
  }
  return flat;
}

}  // namespace

FieldContest::FieldContest(const std::vector<std::string>& names, const Fields& fields, const Setting& setting,
                           uint64_t seed)
    : fields_(&fields), horizons_(setting.horizons), longest_(setting.longest()) {
  for (const std::string& name : names) scores_.emplace_back(name, fields, longest_, seed);
}

void FieldContest::add(const Batch& batch, const std::vector<std::vector<at::Tensor>>& futures) {
  const auto values = [&](const at::Tensor& frames) { return data::values_of(frames, fields_->format); };
  FieldBatch fields{values(batch.truth), {}, {}, batch.first_clip};
  fields.weights = metrics::pixel_weights(fields.truth, batch.valid, fields_->rows);
  if (batch.usual.defined()) fields.usual = values(batch.usual);
  for (size_t i = 0; i < scores_.size(); ++i) {
    std::vector<at::Tensor> in_units;
    for (const at::Tensor& future : futures[i]) in_units.push_back(values(future));
    scores_[i].add(fields, in_units);
    ensemble_ = ensemble_ || futures[i].size() > 1;
  }
}

nlohmann::json FieldContest::scores_of(const FieldScores& forecaster, size_t variable, int64_t begin,
                                       int64_t end) const {
  nlohmann::json scores = forecaster.scores(variable, begin, end);
  if (ensemble_ && !scores.contains("crps")) scores["crps"] = scores["mae"];
  return scores;
}

nlohmann::json FieldContest::to_json() const {
  nlohmann::json variables = nlohmann::json::array(), horizons = nlohmann::json::array();
  for (const Variable& variable : fields_->variables) {
    variables.push_back({{"name", variable.name}, {"units", variable.units}, {"thresholds", variable.thresholds}});
  }
  for (const int64_t frames : horizons_) {
    nlohmann::json rows = nlohmann::json::array();
    for (const FieldScores& scores : scores_) {
      nlohmann::json row = {{"name", scores.name()}};
      for (size_t v = 0; v < fields_->variables.size(); ++v) {
        row["variables"][fields_->variables[v].name] = scores_of(scores, v, 0, frames);
      }
      rows.push_back(std::move(row));
    }
    horizons.push_back({{"frames", frames}, {"rows", rows}});
  }
  return {{"variables", variables}, {"horizons", horizons}, {"curves", curves()}};
}

nlohmann::json FieldContest::curves() const {
  nlohmann::json curves = {{"frames", nlohmann::json::array()}, {"variables", nlohmann::json::object()}};
  for (int64_t k = 1; k <= longest_; ++k) curves["frames"].push_back(k);
  for (size_t v = 0; v < fields_->variables.size(); ++v) {
    nlohmann::json& own = curves["variables"][fields_->variables[v].name];
    for (const FieldScores& scores : scores_) {
      for (int64_t k = 0; k < longest_; ++k) {
        const nlohmann::json flat = flat_scores(scores_of(scores, v, k, k + 1));
        for (const auto& [metric, value] : flat.items()) own[metric][scores.name()].push_back(value);
      }
    }
  }
  return curves;
}

std::vector<VariableMaps> FieldContest::maps() const {
  std::vector<VariableMaps> all;
  for (const Variable& variable : fields_->variables) {
    all.push_back({variable.name, variable.units, {}, {}, longest_});
  }
  for (const FieldScores& scores : scores_) {
    const ErrorMaps maps = scores.error_maps();
    for (size_t v = 0; v < all.size(); ++v) {
      all[v].names.push_back(scores.name());
      all[v].maps.push_back(maps[v]);
    }
  }
  return all;
}

}  // namespace convssm::evaluate
