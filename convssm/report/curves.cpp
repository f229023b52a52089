// The curves of log.jsonl as charts. A long curve is a faint band of its extremes under a line of means: means alone
// hide spikes, all points alone hide the trend. Fields that are not known here are drawn too, as parts of the loss.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "convssm/report/chart.h"
#include "convssm/report/html.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

constexpr size_t kColumns = 500;  // of the band of all values
constexpr size_t kMeans = 160;    // of the line through it

// All values as a faint band and their means as the line; a short curve is drawn as it is.
void add_smoothed(Chart& chart, const std::string& name, const Curve& curve, int color) {
  if (curve.points.size() > 2 * kMeans) {
    chart.lines.push_back({name, min_max(curve.points, kColumns), color, Stroke::faint});
    chart.lines.push_back({name, means(curve.points, kMeans), color, Stroke::solid});
  } else {
    chart.lines.push_back({name, curve.points, color, Stroke::solid});
  }
}

std::string gaps_text(const std::vector<const Curve*>& curves) {
  size_t gaps = 0;
  for (const Curve* curve : curves) gaps += curve == nullptr ? 0 : count_not_finite(curve->points);
  return gaps == 0 ? "" : fmt::format("{} values not finite", gaps);
}

// "discriminator.lr" -> "lr": what a field is, whichever player's.
std::string kind_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// A field of the first player, then those of the others.
std::vector<const Curve*> curves_of(const RunView& run, const std::string& kind) {
  std::vector<const Curve*> curves;
  for (const Curve& curve : run.log.training) {
    if (kind_of(curve.name) == kind) curves.insert(curve.name == kind ? curves.begin() : curves.end(), &curve);
  }
  return curves;
}

std::string loss_chart(const RunView& run) {
  const std::vector<const Curve*> training = curves_of(run, "loss");
  const Curve* validation = RunLog::find(run.log.validation, "loss");
  std::vector<const Curve*> all = training;
  all.push_back(validation);
  Chart chart{"chart-loss", "Loss", gaps_text(all), "step", Scale::automatic, {}};
  int color = 0;
  for (const Curve* curve : training)
    add_smoothed(chart, curve->name == "loss" ? "training" : curve->name, *curve, color++);
  if (validation != nullptr) chart.lines.push_back({"validation", min_max(validation->points, kColumns), color});
  return draw(chart);
}

// Every field that is not drawn elsewhere is a part of the loss.
std::string parts_chart(const RunView& run) {
  static const std::set<std::string> elsewhere = {"loss", "lr", "grad_norm", "frames_per_second", "seconds", "skipped"};
  Chart chart{"chart-parts", "Parts of the loss", "", "step", Scale::automatic, {}};
  int color = 0;
  for (const Curve& curve : run.log.training) {
    if (elsewhere.contains(kind_of(curve.name))) continue;
    const Stroke stroke = color % 16 < 8 ? Stroke::solid : Stroke::dashed;
    chart.lines.push_back({curve.name, means(curve.points, 2 * kMeans), color++, stroke});
  }
  if (chart.lines.size() == 1) chart.hint = chart.lines[0].name;
  return draw(chart);
}

std::string single_chart(const RunView& run, const char* field, Chart chart, bool smooth) {
  const std::vector<const Curve*> curves = curves_of(run, field);
  if (curves.empty()) return "";
  const std::string gaps = gaps_text(curves);
  if (!gaps.empty()) chart.hint = chart.hint.empty() ? gaps : chart.hint + ", " + gaps;
  int color = 0;
  for (const Curve* curve : curves) {
    if (smooth)
      add_smoothed(chart, curve->name, *curve, color++);
    else
      chart.lines.push_back({curve->name, min_max(curve->points, kColumns), color++});
  }
  return draw(chart);
}

std::string skipped_chart(const RunView& run) {
  const Curve* curve = RunLog::find(run.log.training, "skipped");
  const auto positive = [](const Point& point) { return point.y > 0; };
  if (curve == nullptr || std::none_of(curve->points.begin(), curve->points.end(), positive)) return "";
  return single_chart(run, "skipped",
                      {"chart-skipped", "Skipped steps", "gradient not finite", "step", Scale::linear, {}}, false);
}

std::string grid(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

// "copy_last.psnr_f01" -> {"psnr_f01", "copy last"}; without a prefix it is the model.
std::pair<std::string, std::string> metric_and_owner(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {name, "model"};
  std::string owner = name.substr(0, dot);
  std::replace(owner.begin(), owner.end(), '_', ' ');
  return {name.substr(dot + 1), owner};
}

}  // namespace

std::string training_curves(const RunView& run) {
  return section(
      "training", "Training",
      grid(
          loss_chart(run) + parts_chart(run) +
          single_chart(run, "lr", {"chart-lr", "Learning rate", "", "step", Scale::linear, {}}, false) +
          single_chart(run, "grad_norm", {"chart-grad-norm", "Gradient norm", "", "step", Scale::automatic, {}}, true) +
          single_chart(run, "frames_per_second",
                       {"chart-throughput", "Throughput", "frames per second", "step", Scale::linear, {}}, true) +
          skipped_chart(run)));
}

std::string validation_curves(const RunView& run) {
  std::vector<Chart> charts;
  for (const Curve& curve : run.log.validation) {
    const auto [metric, owner] = metric_and_owner(curve.name);
    if (curve.name == "loss") continue;
    const std::string id = "validation-" + metric;
    auto chart = std::find_if(charts.begin(), charts.end(), [&](const Chart& c) { return c.id == id; });
    if (chart == charts.end()) {
      const MetricStyle style = metric_style(metric);
      chart = charts.insert(chart, {id, style.title, style.hint, "step", Scale::linear, {}});
    }
    const bool is_model = owner == "model";
    const Stroke stroke = is_model ? Stroke::solid : Stroke::dashed;
    chart->lines.insert(is_model ? chart->lines.begin() : chart->lines.end(),
                        {owner, min_max(curve.points, kColumns), 0, stroke});
  }
  std::string out;
  for (Chart& chart : charts) {
    for (size_t i = 0; i < chart.lines.size(); ++i) chart.lines[i].color = static_cast<int>(i);
    out += draw(chart);
  }
  return section("validation", "Validation", grid(out));
}

}  // namespace convssm::report
