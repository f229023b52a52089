// Results over the horizon, as a chart: one line per model, the mean of its seeds over the frames that all of them
// have; forecasts without a model in grey. Long curves become running means, since single frames are noisier than the
// gaps between models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/report/results.h"
#include "convssm/report/sections.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr size_t kReach = 5;        // frames before and behind that are averaged, to be readable
constexpr size_t kLongCurve = 100;  // from here on

// At the beginning over fewer, the same number on both sides: it is steep there and stays where it is. The end is flat
// and is averaged over what there is.
std::vector<Point> running_mean(const std::vector<Point>& points) {
  std::vector<Point> out = points;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t reach = std::min(kReach, i), last = std::min(i + reach, points.size() - 1);
    double sum = 0, count = 0;
    for (size_t k = i - reach; k <= last; ++k) {
      if (std::isfinite(points[k].y)) sum += points[k].y, ++count;
    }
    if (std::isfinite(points[i].y)) out[i].y = sum / count;  // a gap stays one
  }
  return out;
}

// Over the frames that all seeds have.
std::vector<Point> mean_curve(const ResultRow& row, const std::string& metric, const std::string& setting) {
  std::vector<Point> sum;
  double count = 0;
  for (const Record* record : row.seeds) {
    const std::string name = row.trivial ? row.forecaster : model_forecast(record->metrics);
    const nlohmann::json* scores = find_setting(record->metrics, setting);
    const auto points = scores == nullptr ? std::vector<Point>() : score_curve(*scores, name, metric);
    if (points.empty()) continue;
    sum.resize(count == 0 ? points.size() : std::min(sum.size(), points.size()), {0, 0});
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = {points[i].x, sum[i].y + points[i].y};
    ++count;
    if (row.trivial) break;  // its records are runs that were scored beside it, and no seeds
  }
  for (Point& point : sum) point.y /= count;
  return sum;
}

// The one that is asked for, else the first that has a curve of the metric.
std::string chosen_setting(const std::vector<ResultRow>& rows, const std::string& metric, const std::string& asked) {
  std::vector<std::string> names;
  for (const ResultRow& row : rows) {
    const nlohmann::json& metrics = row.seeds[0]->metrics;
    for (const ScoredSetting& setting : scored_settings(metrics)) {
      const bool there = !score_curve(*setting.scores, model_forecast(metrics), metric).empty();
      if (asked.empty() ? there : asked == setting.name) return setting.name;
      names.push_back(setting.name);
    }
  }
  if (asked.empty()) return "";
  std::erase(names, "");
  if (!names.empty()) fail_unknown("[results] unknown setting", asked, names);
  fail(ErrorKind::usage, "[results] no run was evaluated in several settings; leave --setting {} out", asked);
}

}  // namespace

Chart horizon_chart(const std::vector<Record>& records, const std::string& metric, const std::string& asked) {
  const auto rows = drawn_rows(records);
  const std::string setting = chosen_setting(rows, metric, asked);
  const MetricStyle style = metric_style(metric);
  Chart chart{"",
              style.title + " over the horizon" + (setting.empty() ? "" : ", " + setting),
              style.hint,
              "frames ahead",
              Scale::linear,
              {}};
  const auto add = [&](const ResultRow& row, int color, Stroke stroke) {
    auto points = mean_curve(row, metric, setting);
    if (!points.empty()) chart.lines.push_back({row.label, std::move(points), color, stroke});
  };
  // The last colour, grey, is left to forecasts without a model.
  for (size_t i = 0; i < rows.size(); ++i) add(rows[i], static_cast<int>(i) % (line_colors - 1), Stroke::solid);
  for (const DataGroup& group : data_groups(rows)) {
    Stroke stroke = Stroke::dashed;
    for (ResultRow row : trivial_rows(group.rows)) {
      if (!group.title.empty()) row.label += " · " + group.title;
      add(row, line_colors - 1, stroke);
      stroke = Stroke::dotted;
    }
  }
  const bool is_long = std::any_of(chart.lines.begin(), chart.lines.end(),
                                   [](const Line& line) { return line.points.size() >= kLongCurve; });
  if (!is_long) return chart;
  for (Line& line : chart.lines) line.points = running_mean(line.points);
  chart.hint += fmt::format(", running mean over {} frames", 2 * kReach + 1);
  return chart;
}

}  // namespace convssm::report
