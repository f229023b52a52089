// Scores of fields in units: a table for each variable, charts over lead time, ranks of ensembles, maps of the error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "convssm/report/chart.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/score_table.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using nlohmann::json;

const json& member(const json& object, const std::string& key) {
  static const json none;
  return object.is_object() && object.contains(key) ? object[key] : none;
}

struct Score {
  std::string title, path;  // "CSI ≥ 0.1 mm", "csi@0.1"
  int better = 0;
  bool drawn = false;  // as a chart over lead time too
};

std::vector<Score> scores_of(const json& variable, const json& fss_windows) {
  std::vector<Score> scores = {
      {"RMSE", "rmse", -1, true}, {"MAE", "mae", -1}, {"bias", "bias", 0, true}, {"ACC", "acc", +1, true}};
  const std::string units = text_at(variable, "units");
  for (const json& value : array_at(variable, "thresholds")) {
    if (!value.is_number()) continue;
    const auto threshold = value.get<double>();
    const std::string what = fmt::format(" ≥ {}{}{}", threshold, units.empty() ? "" : " ", units);
    scores.push_back({"CSI" + what, fmt::format("csi@{}", threshold), +1, true});
    scores.push_back({"POD" + what, fmt::format("pod@{}", threshold), +1});
    scores.push_back({"FAR" + what, fmt::format("far@{}", threshold), -1});
    scores.push_back({"frequency bias" + what, fmt::format("frequency_bias@{}", threshold), 0});
    for (const json& window : fss_windows) {
      scores.push_back({fmt::format("FSS{}, {} px", what, window.dump()),
                        fmt::format("fss@{}/{}px", threshold, window.dump()), +1, true});
    }
  }
  for (const Score& score : {Score{"CRPS", "crps", -1, true}, Score{"CRPS, fair", "crps_fair", -1},
                             Score{"RMSE of the mean", "rmse_of_mean", -1}, Score{"spread", "spread", 0},
                             Score{"spread / skill", "spread_skill", 0, true}}) {
    scores.push_back(score);
  }
  return scores;
}

// The number at "csi@0.1" or "fss@0.1/3px" of the scores of a variable; NaN if there is none.
double score_at(const json& scores, const std::string& path) {
  const size_t at = path.find('@');
  if (at == std::string::npos) return number_at(scores, path.c_str()).value_or(std::nan(""));
  const std::string key = path.substr(0, at), rest = path.substr(at + 1), threshold = rest.substr(0, rest.find('/'));
  for (const json& event : array_at(scores, "events")) {
    if (fmt::format("{}", number_at(event, "threshold").value_or(std::nan(""))) != threshold) continue;
    if (key != "fss") return number_at(event, key.c_str()).value_or(std::nan(""));
    const std::string window = rest.substr(rest.find('/') + 1);
    return number_at(member(event, "fss"), window.substr(0, window.size() - 2).c_str()).value_or(std::nan(""));
  }
  return std::nan("");
}

std::string variable_table(const json& skill, const std::string& name, const std::vector<Score>& scores) {
  const json& horizons = array_at(skill, "horizons");
  const auto value_of = [&](const json& row, const Score& score) {
    return score_at(member(member(row, "variables"), name), score.path);
  };
  std::vector<Score> columns;  // that any forecast has
  for (const Score& score : scores) {
    const bool any = std::ranges::any_of(horizons, [&](const json& horizon) {
      return std::ranges::any_of(array_at(horizon, "rows"),
                                 [&](const json& row) { return std::isfinite(value_of(row, score)); });
    });
    if (any) columns.push_back(score);
  }
  std::string head = "<tr><th>frames ahead</th><th class=\"left\">forecast</th>", body;
  for (const Score& score : columns)
    head += fmt::format("<th>{}{}</th>", escape(score.title), better_arrow(score.better));
  for (const json& horizon : horizons) {
    const json rows = array_at(horizon, "rows");
    for (size_t i = 0; i < rows.size(); ++i) {
      body += i == 0 ? fmt::format("<tr class=\"first\"><td rowspan=\"{}\">to {}</td>", rows.size(),
                                   short_number(number_at(horizon, "frames").value_or(std::nan(""))))
                     : std::string("<tr>");
      body += fmt::format("<td class=\"left\">{}</td>", escape(text_at(rows[i], "name")));
      for (const Score& score : columns) {
        const double value = value_of(rows[i], score);
        double best = std::nan("");
        for (const json& row : rows) {
          const double other = value_of(row, score);
          if (std::isfinite(other) && !(score.better * other <= score.better * best)) best = other;
        }
        const std::string text = std::isfinite(value) ? short_number(value) : "–";
        body += score.better != 0 && rows.size() > 1 && value == best ? "<td><b>" + text + "</b></td>"
                                                                      : "<td>" + text + "</td>";
      }
      body += "</tr>\n";
    }
  }
  return "<div class=\"wide\"><table>\n<thead>" + head + "</tr></thead>\n<tbody>\n" + body + "</tbody></table></div>\n";
}

// The model first, what needs none dashed behind it.
void add_lines(Chart& chart, const json& frames, const json& owners, const std::string& model) {
  int color = 0;
  for (const bool models : {true, false}) {
    for (const auto& [owner, values] : owners.items()) {
      if ((owner == model) != models || !values.is_array()) continue;
      std::vector<Point> points;
      for (size_t i = 0; i < std::min(frames.size(), values.size()); ++i) {
        if (!frames[i].is_number()) continue;
        points.push_back({frames[i].get<double>(), values[i].is_number() ? values[i].get<double>() : std::nan("")});
      }
      chart.lines.push_back({owner, min_max(points, 400), color++, models ? Stroke::solid : Stroke::dashed});
    }
  }
}

// How often how many members were below the truth, over the longest horizon; flat is right.
std::string rank_chart(const json& skill, const std::string& name, const std::string& id) {
  Chart chart{id + "-ranks",
              "Ranks of the truth, " + name,
              "share of pixels; flat if reliable",
              "members below the truth",
              Scale::linear,
              {}};
  const json horizons = array_at(skill, "horizons");
  if (horizons.empty()) return "";
  for (const json& row : array_at(horizons.back(), "rows")) {
    const json histogram = array_at(member(member(row, "variables"), name), "rank_histogram");
    std::vector<Point> points;
    for (size_t r = 0; r < histogram.size(); ++r) {
      if (histogram[r].is_number()) points.push_back({static_cast<double>(r), histogram[r].get<double>()});
    }
    if (!points.empty()) {
      chart.lines.push_back({text_at(row, "name"), points, static_cast<int>(chart.lines.size()), Stroke::solid});
    }
  }
  return draw(chart);
}

std::string map_figure(const RunView& run, const std::string& file) {
  for (const Sample& sample : run.samples.shown) {
    if (sample.name != file) continue;
    return fmt::format(
        "<div class=\"samples\"><figure class=\"sample\"><img alt=\"{0}\" width=\"{1}\" "
        "style=\"max-width:100%;height:auto\" "
        "src=\"data:{2};base64,{3}\"><figcaption>root mean square error of each pixel at the last "
        "frame</figcaption></figure></div>\n",
        escape(file), sample.width / 2, sample.type, base64(sample.bytes));
  }
  return "";
}

}  // namespace

std::string error_map_file(size_t setting, size_t variable) {
  return fmt::format("{}{}-{}.png", kErrorMap, setting == 0 ? "" : fmt::format("-setting-{}", setting + 1),
                     variable + 1);
}

std::string skill_part(const RunView& run, const json& scores, const std::string& model, size_t setting) {
  const json& skill = member(scores, "skill");
  const json variables = array_at(skill, "variables");
  const json& protocol = member(run.metrics, "protocol");
  const json &curves = member(skill, "curves"), frames = array_at(curves, "frames");
  std::string out;
  for (size_t v = 0; v < variables.size(); ++v) {
    const std::string name = text_at(variables[v], "name"), units = text_at(variables[v], "units");
    const std::string title = name + (units.empty() ? "" : " [" + units + "]");
    const std::vector<Score> known = scores_of(variables[v], array_at(protocol, "fss_windows"));
    const std::string id = fmt::format("skill-{}-{}", setting + 1, v + 1);
    out += fmt::format("<h3>{}</h3>\n", escape(title)) + variable_table(skill, name, known);
    std::string charts;
    for (const Score& score : known) {
      const json& owners = member(member(member(curves, "variables"), name), score.path);
      if (!score.drawn || !owners.is_object()) continue;
      Chart chart{
          id + "-" + score.path, fmt::format("{}, {}", score.title, title), "", "frames ahead", Scale::linear, {}};
      add_lines(chart, frames, owners, model);
      charts += draw(chart);
    }
    charts += rank_chart(skill, name, id);
    if (!charts.empty()) out += "<div class=\"charts\">\n" + charts + "</div>\n";
    out += map_figure(run, error_map_file(setting, v));
  }
  if (out.empty()) return "";
  const std::string weights = text_at(member(protocol, "skill"), "weights");
  std::string basis = "Scores in the units of the data, of what was measured";
  if (!weights.empty() && weights != "none") basis += ", pixels weighted by the " + weights;
  if (member(member(protocol, "skill"), "clipped") == true) {
    basis += ", of a truth that was cut to the range of its channel (data.clamp)";
  }
  for (const auto& [reference, about] : member(protocol, "references").items()) {
    if (about.is_string()) basis += " · " + reference + ": " + about.get<std::string>();
  }
  return "<p class=\"soft small\">" + escape(basis) + "</p>\n" + out;
}

}  // namespace convssm::report
