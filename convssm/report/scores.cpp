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

bool has_metric(const json& metrics, const std::string& metric) {
  for (const json& horizon : at(metrics, "horizons")) {
    for (const json& row : at(horizon, "rows")) {
      if (at(row, metric).is_object()) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<int64_t> horizons(const json& metrics) {
  std::vector<int64_t> out;
  for (const json& horizon : at(metrics, "horizons")) {
    if (const auto frames = number_at(horizon, "frames")) out.push_back(std::llround(*frames));
  }
  return out;
}

std::string model_forecast(const json& metrics) {
  const std::string named = text_at(at(metrics, "protocol"), "model");
  const json& horizons = at(metrics, "horizons");
  if (!named.empty() || !horizons.is_array() || horizons.empty()) return named;
  const json& rows = at(horizons[0], "rows");
  return rows.is_array() && !rows.empty() ? text_at(rows[0], "name") : "";
}

std::vector<std::string> trivial_forecasts(const json& metrics) {
  const std::string model = model_forecast(metrics);
  std::vector<std::string> names;
  for (const json& horizon : at(metrics, "horizons")) {
    for (const json& row : at(horizon, "rows")) {
      const std::string name = text_at(row, "name");
      if (name != model && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::optional<double> score(const json& metrics, int64_t horizon, const std::string& forecaster,
                            const std::string& metric) {
  for (const json& entry : at(metrics, "horizons")) {
    const auto frames = number_at(entry, "frames");
    if (!frames || std::llround(*frames) != horizon) continue;
    for (const json& row : at(entry, "rows")) {
      if (text_at(row, "name") == forecaster) return number_at(at(row, metric), "mean");
    }
  }
  return std::nullopt;
}

std::vector<Point> score_curve(const json& metrics, const std::string& forecaster, const std::string& metric) {
  const json& curves = at(metrics, "curves");
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
