// Rows of the table are forecasts, one line each; a horizon is a group of rows, and where clips know their revisits so are the
// frames of places seen before and the others.
#include "convssm/report/score_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Cell {
  double mean = kNone, deviation = kNone;
  double best = kNone, best_deviation = kNone;  // of several futures
};

// The cells of one horizon, or of some of its frames: by row name and metric.
struct Horizon {
  std::string frames;
  std::vector<std::string> metrics;
  std::map<std::pair<std::string, std::string>, Cell> cells;
};

struct Table {
  std::vector<std::string> rows;
  std::vector<Horizon> horizons;
  std::string best;  // "best of 8"
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::optional<Cell> cell_of(const json& value, bool spread) {
  if (value.is_number()) return Cell{value.get<double>()};
  if (!value.is_object() || !value.contains("mean")) return std::nullopt;
  const auto number = [&](const char* key) { return number_at(value, key).value_or(kNone); };
  return Cell{number("mean"), spread ? number("std") : kNone, number("best"), spread ? number("best_std") : kNone};
}

// One chunk of clips has no spread, whatever a file says.
bool has_spread(const json& protocol) {
  const auto samples = number_at(protocol, "samples"), chunk = number_at(protocol, "chunk");
  return !samples || !chunk || *samples > *chunk;
}

void add_horizon(Table& table, const std::string& title, const json& entry, bool spread) {
  Horizon horizon{title, {}, {}};
  for (const json& row : array_at(entry, "rows")) {
    const std::string name = text_at(row, "name");
    if (!row.is_object()) continue;
    add_once(table.rows, name);
    for (const auto& [metric, value] : row.items()) {
      const auto cell = cell_of(value, spread);
      if (!cell || metric == "name") continue;
      add_once(horizon.metrics, metric);
      horizon.cells[{name, metric}] = *cell;
    }
  }
  if (!horizon.metrics.empty()) table.horizons.push_back(std::move(horizon));
}

Table read_table(const json& scores, const json& protocol) {
  Table table;
  table.best = fmt::format("best of {}", short_number(number_at(protocol, "futures").value_or(kNone)));
  for (const json& entry : array_at(scores, "horizons")) {
    const std::string frames = short_number(number_at(entry, "frames").value_or(kNone));
    add_horizon(table, frames, entry, has_spread(protocol));
    for (const auto& [key, words] : {std::pair{"seen_before", "seen before"}, {"never_seen", "never seen"}}) {
      if (!entry.is_object() || !entry.contains(key)) continue;
      const double share = 100 * number_at(entry[key], "share").value_or(kNone);
      add_horizon(table, fmt::format("{}<br><span class=\"soft\">{}: {:.0f}%</span>", frames, words, share), entry[key],
                  false);
    }
  }
  return table;
}

// The mean that wins its column, NaN if it is not known which direction is better or there is nothing to compare.
double best_of(const Table& table, const Horizon& horizon, const std::string& metric) {
  const int better = metric_style(metric).better;
  double best = kNone;
  int count = 0;
  for (const std::string& row : table.rows) {
    const auto cell = horizon.cells.find({row, metric});
    if (cell == horizon.cells.end() || !std::isfinite(cell->second.mean)) continue;
    ++count;
    if (!(better * cell->second.mean <= better * best)) best = cell->second.mean;
  }
  return better != 0 && count > 1 ? best : kNone;
}

std::string number_text(double value, double deviation, int decimals, bool bold) {
  std::string out = fmt::format("{:.{}f}", value, decimals);
  if (bold) out = "<b>" + out + "</b>";
  return std::isfinite(deviation) ? out + fmt::format(" <span class=\"soft\">± {:.{}f}</span>", deviation, decimals)
                                  : out;
}

std::string cell_text(const Cell& cell, const Table& table, const std::string& metric, bool is_best) {
  if (!std::isfinite(cell.mean)) return "–";
  const int decimals = metric_style(metric).decimals;
  std::string out = number_text(cell.mean, cell.deviation, decimals, is_best);
  if (!std::isfinite(cell.best)) return out;
  return out + fmt::format("<br><span class=\"soft\">{}:</span> {}", table.best,
                           number_text(cell.best, cell.best_deviation, decimals, false));
}

std::vector<std::string> metrics_of(const Table& table) {
  std::vector<std::string> metrics;
  for (const Horizon& horizon : table.horizons) {
    for (const std::string& metric : horizon.metrics) add_once(metrics, metric);
  }
  return in_usual_order(metrics);
}

std::string table_head(const std::vector<std::string>& metrics, bool given_back) {
  std::string columns = given_back ? "<tr><th>frames of a clip</th><th class=\"left\">reconstruction</th>"
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
      out += fmt::format("<td>{}</td>", cell_text(found, table, metric, found.mean == best_of(table, horizon, metric)));
    }
    out += "</tr>\n";
  }
  return out;
}

}  // namespace

json array_at(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : json::array();
}

bool reconstructs(const json& protocol) { return text_at(protocol, "task") == "reconstruct"; }

std::string score_table(const json& scores, const json& protocol) {
  const Table table = read_table(scores, protocol);
  if (table.horizons.empty()) return "";
  const std::vector<std::string> metrics = metrics_of(table);
  std::string rows;
  for (const Horizon& horizon : table.horizons) rows += horizon_rows(table, horizon, metrics);
  return "<div class=\"wide\"><table>\n" + table_head(metrics, reconstructs(protocol)) + "<tbody>\n" + rows +
         "</tbody></table></div>\n";
}

}  // namespace convssm::report
