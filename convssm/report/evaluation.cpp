// metrics.json as a table over horizons and as charts over the generated frames. Read leniently, value by value: a file
// of another version or one that is damaged loses cells and not the page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "convssm/report/chart.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using nlohmann::json;

struct Cell {
  double mean = std::numeric_limits<double>::quiet_NaN(), deviation = mean;
};

// The cells of one horizon: by row name and metric.
struct Horizon {
  std::string frames;
  std::vector<std::string> metrics;
  std::map<std::pair<std::string, std::string>, Cell> cells;
};

struct Table {
  std::vector<std::string> rows;
  std::vector<Horizon> horizons;
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::optional<Cell> cell_of(const json& value) {
  if (value.is_number()) return Cell{value.get<double>(), std::numeric_limits<double>::quiet_NaN()};
  if (!value.is_object() || !value.contains("mean")) return std::nullopt;
  const double none = std::numeric_limits<double>::quiet_NaN();
  return Cell{number_at(value, "mean").value_or(none), number_at(value, "std").value_or(none)};
}

json array_at(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : json::array();
}

// One chunk of clips has no spread, whatever a file says.
bool has_spread(const json& metrics) {
  const json protocol = metrics.value("protocol", json::object());
  const auto samples = number_at(protocol, "samples"), chunk = number_at(protocol, "chunk");
  return !samples || !chunk || *samples > *chunk;
}

Table read_table(const json& metrics) {
  Table table;
  const bool spread = has_spread(metrics);
  for (const json& entry : array_at(metrics, "horizons")) {
    Horizon horizon{short_number(number_at(entry, "frames").value_or(std::nan(""))), {}, {}};
    for (const json& row : array_at(entry, "rows")) {
      const std::string name = text_at(row, "name");
      if (!row.is_object()) continue;
      add_once(table.rows, name);
      for (const auto& [metric, value] : row.items()) {
        auto cell = cell_of(value);
        if (!cell || metric == "name") continue;
        if (!spread) cell->deviation = std::nan("");
        add_once(horizon.metrics, metric);
        horizon.cells[{name, metric}] = *cell;
      }
    }
    if (!horizon.metrics.empty()) table.horizons.push_back(std::move(horizon));
  }
  return table;
}

// The mean that wins its column, NaN if it is not known which direction is better or there is nothing to compare.
double best_of(const Table& table, const Horizon& horizon, const std::string& metric) {
  const int better = metric_style(metric).better;
  double best = std::nan("");
  int count = 0;
  for (const std::string& row : table.rows) {
    const auto cell = horizon.cells.find({row, metric});
    if (cell == horizon.cells.end() || !std::isfinite(cell->second.mean)) continue;
    ++count;
    if (!(better * cell->second.mean <= better * best)) best = cell->second.mean;
  }
  return better != 0 && count > 1 ? best : std::nan("");
}

std::string cell_text(const Cell& cell, const std::string& metric, bool is_best) {
  if (!std::isfinite(cell.mean)) return "–";
  const int decimals = metric_style(metric).decimals;
  std::string out = fmt::format("{:.{}f}", cell.mean, decimals);
  if (is_best) out = "<b>" + out + "</b>";
  if (std::isfinite(cell.deviation))
    out += fmt::format(" <span class=\"soft\">± {:.{}f}</span>", cell.deviation, decimals);
  return out;
}

std::vector<std::string> metrics_of(const Table& table) {
  std::vector<std::string> metrics;
  for (const Horizon& horizon : table.horizons) {
    for (const std::string& metric : horizon.metrics) add_once(metrics, metric);
  }
  return in_usual_order(metrics);
}

std::string table_head(const std::vector<std::string>& metrics, bool reconstructs) {
  std::string columns = reconstructs ? "<tr><th>frames of a clip</th><th class=\"left\">reconstruction</th>"
                                     : "<tr><th>frames ahead</th><th class=\"left\">forecast</th>";
  for (const std::string& metric : metrics) {
    const MetricStyle style = metric_style(metric);
    columns +=
        fmt::format("<th>{}{}{}</th>", escape(style.title), better_arrow(style.better),
                    style.title == metric ? "" : fmt::format("<br><span class=\"soft\">{}</span>", escape(metric)));
  }
  return "<thead>" + columns + "</tr></thead>\n";
}

// One line for each forecast: as many columns as metrics fit a laptop, whatever the number of horizons.
std::string horizon_rows(const Table& table, const Horizon& horizon, const std::vector<std::string>& metrics) {
  std::string out;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    out += i == 0 ? fmt::format("<tr class=\"first\"><td rowspan=\"{}\">{}</td>", table.rows.size(), horizon.frames)
                  : std::string("<tr>");
    out += fmt::format("<td class=\"left\">{}</td>", escape(table.rows[i]));
    for (const std::string& metric : metrics) {
      const auto cell = horizon.cells.find({table.rows[i], metric});
      const Cell found = cell == horizon.cells.end() ? Cell{} : cell->second;
      out += fmt::format("<td>{}</td>", cell_text(found, metric, found.mean == best_of(table, horizon, metric)));
    }
    out += "</tr>\n";
  }
  return out;
}

std::string draw_table(const Table& table, bool reconstructs) {
  if (table.horizons.empty()) return "";
  const std::vector<std::string> metrics = metrics_of(table);
  std::string rows;
  for (const Horizon& horizon : table.horizons) rows += horizon_rows(table, horizon, metrics);
  return "<div class=\"wide\"><table>\n" + table_head(metrics, reconstructs) + "<tbody>\n" + rows +
         "</tbody></table></div>\n";
}

// How the codes of a tokenizer are used.
std::string codes_text(const json& metrics) {
  if (!metrics.is_object() || !metrics.contains("codes") || !metrics["codes"].is_object()) return "";
  const json& codes = metrics["codes"];
  const auto used = number_at(codes, "used"), size = number_at(codes, "size"),
             perplexity = number_at(codes, "perplexity");
  if (!used || !size || !perplexity) return "";
  return fmt::format("<p>{:.1f}% of {:.0f} codes in use, perplexity {:.1f}.</p>\n", 100 * *used, *size, *perplexity);
}

std::string protocol_text(const json& metrics) {
  if (!metrics.contains("protocol") || !metrics["protocol"].is_object()) return "";
  std::string out;
  for (const auto& [key, value] : metrics["protocol"].items()) {
    if (value.is_structured()) continue;
    const std::string text = value.is_string()    ? value.get<std::string>()
                             : value.is_boolean() ? (value.get<bool>() ? "yes" : "no")
                                                  : value.dump(-1, ' ', false, json::error_handler_t::replace);
    out += (out.empty() ? "" : " · ") + escape(key) + " " + escape(text);
  }
  return out.empty() ? "" : "<p class=\"soft small\">" + out + "</p>\n";
}

// Which checkpoint the numbers are of, and whether there is a newer one.
std::string step_text(const RunView& run) {
  const auto step = scored_step(run.metrics);
  if (!step) return "";
  std::string text = fmt::format("Scores of the checkpoint of step {}.", grouped(*step));
  if (run.newest_step && *run.newest_step > *step) {
    text = fmt::format("<b>{} The newest is that of step {}: run <code>convssm evaluate</code> again.</b>", text,
                       grouped(*run.newest_step));
  }
  return "<p>" + text + "</p>\n";
}

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// What each metric is, with the checksums of its weights, and what was left out.
std::string definitions(const json& metrics) {
  if (!metrics.contains("protocol") || !metrics["protocol"].is_object()) return "";
  const json& protocol = metrics["protocol"];
  const json known = protocol.value("metrics", json::object());
  std::string lines;
  for (const auto& [name, about] : known.items()) {
    if (!about.is_object()) continue;
    lines += fmt::format("<li><b>{}</b>: {}; takes {}; as {}", escape(name), escape(text_at(about, "definition")),
                         escape(text_at(about, "input")), escape(text_at(about, "reference")));
    if (about.contains("weights")) lines += "; weights " + escape(as_text(about["weights"]));
    lines += "</li>\n";
  }
  for (const json& line : array_at(protocol, "left_out")) {
    lines += "<li class=\"soft\">left out: " + escape(as_text(line)) + "</li>\n";
  }
  if (lines.empty()) return "";
  return "<details><summary>What the metrics are</summary><ul>\n" + lines + "</ul></details>\n";
}

std::vector<Point> horizon_points(const json& frames, const json& values) {
  std::vector<Point> points;
  for (size_t i = 0; values.is_array() && i < std::min(frames.size(), values.size()); ++i) {
    if (!frames[i].is_number()) continue;
    points.push_back({frames[i].get<double>(), values[i].is_number() ? values[i].get<double>() : std::nan("")});
  }
  return points;
}

std::string horizon_charts(const json& metrics) {
  if (!metrics.contains("curves") || !metrics["curves"].is_object()) return "";
  const json& curves = metrics["curves"];
  const json frames = array_at(curves, "frames");
  std::vector<std::string> names;
  for (const auto& [metric, owners] : curves.items()) {
    if (owners.is_object()) names.push_back(metric);
  }
  std::string out;
  for (const std::string& metric : in_usual_order(names)) {
    const json& owners = curves[metric];
    const MetricStyle style = metric_style(metric);
    Chart chart{
        "horizon-" + metric, style.title + " over the horizon", style.hint, "generated frame", Scale::linear, {}};
    int color = 0;
    const std::string model = metrics.value(json::json_pointer("/protocol/model"), "model");
    // The model first, baselines dashed behind it.
    for (const bool models : {true, false}) {
      for (const auto& [owner, values] : owners.items()) {
        if ((owner == model) != models) continue;
        chart.lines.push_back(
            {owner, min_max(horizon_points(frames, values), 400), color++, models ? Stroke::solid : Stroke::dashed});
      }
    }
    out += draw(chart);
  }
  return out.empty() ? "" : "<div class=\"charts\">\n" + out + "</div>\n";
}

}  // namespace

std::string evaluation(const RunView& run) {
  const bool there = run.metrics.is_object();
  const bool reconstructs = there && text_at(run.metrics.value("protocol", json()), "task") == "reconstruct";
  const std::string results =
      draw_table(read_table(run.metrics), reconstructs) + codes_text(run.metrics) + horizon_charts(run.metrics);
  return section(
      "evaluation", "Evaluation",
      results.empty() ? "" : step_text(run) + protocol_text(run.metrics) + results + definitions(run.metrics));
}

}  // namespace convssm::report
