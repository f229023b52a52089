// Look-ups that give nothing for whatever is missing or of another type. Of several conventions of a metric the table
// shows the paper's where a run has it.
#include "convssm/report/scores.h"

#include <algorithm>
#include <cmath>

#include "convssm/report/run_view.h"

namespace convssm::report {
namespace {

using nlohmann::json;

const json& at(const json& value, const std::string& key) {
  static const json none;
  return value.is_object() && value.contains(key) ? value[key] : none;
}

// Of each kind, the convention of the paper first.
const std::vector<std::vector<std::string>>& kinds() {
  static const std::vector<std::vector<std::string>> list = {{"psnr_f01", "psnr_u8"},
                                                             {"ssim_gauss11", "ssim_uniform7"},
                                                             {"lpips_alex", "lpips_squeeze", "lpips_vgg"},
                                                             {"fvd_i3d"}};
  return list;
}

// `each` is given the rows of all horizons of all settings; true ends it.
template <typename Each>
bool any_row(const json& metrics, const Each& each) {
  for (const ScoredSetting& setting : scored_settings(metrics)) {
    for (const json& horizon : at(*setting.scores, "horizons")) {
      for (const json& row : at(horizon, "rows")) {
        if (each(row)) return true;
      }
    }
  }
  return false;
}

bool has_metric(const json& metrics, const std::string& metric) {
  return any_row(metrics, [&](const json& row) { return at(row, metric).is_object(); });
}

}  // namespace

std::vector<ScoredSetting> scored_settings(const json& metrics) {
  if (!at(metrics, "settings").is_array()) return {{"", &metrics}};
  std::vector<ScoredSetting> all;
  for (const json& setting : metrics["settings"]) {
    if (setting.is_object()) all.push_back({text_at(setting, "name"), &setting});
  }
  return all;
}

const json* find_setting(const json& metrics, const std::string& name) {
  for (const ScoredSetting& setting : scored_settings(metrics)) {
    if (setting.name == name) return setting.scores;
  }
  return nullptr;
}

const json& first_setting(const json& metrics) {
  static const json none;
  const auto all = scored_settings(metrics);
  return all.empty() ? none : *all[0].scores;
}

std::vector<int64_t> horizons(const json& scores) {
  std::vector<int64_t> out;
  for (const json& horizon : at(scores, "horizons")) {
    if (const auto frames = number_at(horizon, "frames")) out.push_back(std::llround(*frames));
  }
  return out;
}

std::string model_forecast(const json& metrics) {
  std::string name = text_at(at(metrics, "protocol"), "model");
  if (!name.empty()) return name;
  any_row(metrics, [&](const json& row) {
    name = text_at(row, "name");
    return true;
  });
  return name;
}

std::vector<std::string> trivial_forecasts(const json& metrics) {
  const std::string model = model_forecast(metrics);
  std::vector<std::string> names;
  any_row(metrics, [&](const json& row) {
    const std::string name = text_at(row, "name");
    if (name != model && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return false;
  });
  return names;
}

std::optional<double> score(const json& scores, int64_t horizon, const std::string& forecaster,
                            const std::string& metric) {
  for (const json& entry : at(scores, "horizons")) {
    const auto frames = number_at(entry, "frames");
    if (!frames || std::llround(*frames) != horizon) continue;
    for (const json& row : at(entry, "rows")) {
      if (text_at(row, "name") == forecaster) return number_at(at(row, metric), "mean");
    }
  }
  return std::nullopt;
}

std::vector<Point> score_curve(const json& scores, const std::string& forecaster, const std::string& metric) {
  const json& curves = at(scores, "curves");
  const json &frames = at(curves, "frames"), &values = at(at(curves, metric), forecaster);
  std::vector<Point> points;
  for (size_t i = 0; frames.is_array() && values.is_array() && i < std::min(frames.size(), values.size()); ++i) {
    if (!frames[i].is_number()) continue;
    points.push_back({frames[i].get<double>(), values[i].is_number() ? values[i].get<double>() : std::nan("")});
  }
  return points;
}

std::vector<std::string> usual_metrics(const std::vector<const Record*>& records) {
  std::vector<std::string> out;
  for (const auto& kind : kinds()) {
    std::string best;
    int64_t most = 0;
    for (const std::string& metric : kind) {
      const auto count = std::count_if(records.begin(), records.end(),
                                       [&](const Record* record) { return has_metric(record->metrics, metric); });
      if (count > most) best = metric, most = count;
    }
    if (most > 0) out.push_back(best);
  }
  return out;
}

}  // namespace convssm::report
