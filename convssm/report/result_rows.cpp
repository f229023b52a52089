// A column is a function from a row to a value, and a row is one record or several of different seeds: the mean is taken
// in one place.
#include "convssm/report/result_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "convssm/report/numbers.h"
#include "convssm/report/run_view.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using Read = std::function<std::optional<double>(const ResultRow&, const Record&)>;

double over_seeds(const ResultRow& row, const Read& read) {
  double sum = 0, count = 0;
  for (const Record* record : row.seeds) {
    const auto found = read(row, *record);
    if (found && std::isfinite(*found)) sum += *found, ++count;
    if (row.trivial && count > 0) break;  // its records are runs that were scored beside it, and no seeds
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

Column cost(const char* title, std::optional<double> Record::*field, const std::function<std::string(double)>& text) {
  const Read read = [field](const ResultRow& row, const Record& record) {
    return row.trivial ? std::nullopt : record.*field;
  };
  return {title, "", [read](const ResultRow& row) { return over_seeds(row, read); }, text};
}

Column score_column(const std::string& metric, int64_t horizon) {
  const MetricStyle style = metric_style(metric);
  const Read read = [metric, horizon](const ResultRow& row, const Record& record) {
    return score(record.metrics, horizon, row.trivial ? row.forecaster : model_forecast(record.metrics), metric);
  };
  return {style.title, fmt::format("{} frames ahead", horizon),
          [read](const ResultRow& row) { return over_seeds(row, read); },
          [digits = style.decimals](double value) { return fmt::format("{:.{}f}", value, digits); }};
}

std::string millions(double value) { return fmt::format("{:.{}f} M", value / 1e6, value < 1e7 ? 2 : 1); }
std::string two_digits(double value) { return fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0); }
std::string whole(double value) { return value < 9.95 ? two_digits(value) : grouped(std::llround(value)); }

// "ConvS5, seed 2": the label of one run among the seeds of a row.
std::string seed_label(const Record& record) {
  return record.seed ? fmt::format("{}, seed {}", record.label, *record.seed) : record.label + ", " + record.row;
}

// With the step of scores that are not those of the newest checkpoint.
std::string single_label(const Record& record) {
  const std::string label = record.part == "seed" ? seed_label(record) : record.label;
  if (!record.stale()) return label;
  return fmt::format("{} (at step {} of {})", label, *record.scored_step, *record.newest_step);
}

// "folder, path runs/a": the name of the data, and those of its options that are not the same for all.
std::string data_title(const nlohmann::json& data, const std::set<std::string>& differing) {
  if (data.empty()) return "data that is not known";
  std::string title = text_at(data, "name");
  for (const std::string& key : differing) {
    const nlohmann::json value = data.value(key, nlohmann::json());
    if (key == "name" || value.is_null()) continue;
    title += fmt::format(", {} {}", key,
                         value.is_string() ? value.get<std::string>()
                                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return title;
}

std::set<std::string> differing_keys(const std::vector<nlohmann::json>& all) {
  std::set<std::string> keys;
  for (const auto& data : all) {
    for (const auto& item : data.items()) {
      for (const auto& other : all) {
        if (!other.empty() && other.value(item.key(), nlohmann::json()) != item.value()) keys.insert(item.key());
      }
    }
  }
  return keys;
}

}  // namespace

std::vector<ResultRow> model_rows(const std::vector<Record>& records, const std::string& part) {
  std::vector<ResultRow> rows;
  for (const Record& record : records) {
    if (record.part != part || !record.evaluated()) continue;
    rows.push_back({record.label, "", {&record}, false});
    for (const Record& other : records) {
      if (other.part == "seed" && other.of == record.row && other.evaluated()) rows.back().seeds.push_back(&other);
    }
  }
  return rows;
}

std::vector<ResultRow> single_rows(const std::vector<Record>& records) {
  std::vector<ResultRow> rows, others;
  for (const char* part : {"table", "seed", "ablation", "rate"}) {
    for (const Record& record : records) {
      if (record.part != part || !record.evaluated()) continue;
      rows.push_back({single_label(record), "", {&record}, false});
    }
  }
  if (!rows.empty()) return rows;
  for (const Record& record : records) {
    if (record.evaluated()) others.push_back({single_label(record), "", {&record}, false});
  }
  return others;
}

std::vector<ResultRow> drawn_rows(const std::vector<Record>& records) {
  auto rows = model_rows(records, "table");
  return rows.empty() ? single_rows(records) : rows;
}

std::vector<ResultRow> trivial_rows(const std::vector<ResultRow>& models) {
  std::vector<ResultRow> rows;
  for (const ResultRow& model : models) {
    for (const Record* record : model.seeds) {
      for (const std::string& name : trivial_forecasts(record->metrics)) {
        const auto row = std::ranges::find(rows, name, &ResultRow::forecaster);
        if (row == rows.end()) {
          rows.push_back({name, name, {record}, true});
        } else {
          row->seeds.push_back(record);
        }
      }
    }
  }
  return rows;
}

std::vector<DataGroup> data_groups(const std::vector<ResultRow>& rows) {
  std::vector<DataGroup> groups;
  std::vector<nlohmann::json> all;
  for (const ResultRow& row : rows) {
    const nlohmann::json& data = row.seeds[0]->data;
    const auto place = static_cast<size_t>(std::ranges::find(all, data) - all.begin());
    if (place == all.size()) all.push_back(data), groups.emplace_back();
    groups[place].rows.push_back(row);
  }
  if (groups.size() < 2) return groups;
  const auto differing = differing_keys(all);
  for (size_t i = 0; i < groups.size(); ++i) groups[i].title = data_title(all[i], differing);
  return groups;
}

std::vector<Column> cost_columns(const std::vector<ResultRow>& rows) {
  std::vector<Column> columns = {cost("parameters", &Record::parameters, millions),
                                 cost("lr", &Record::lr, short_number),
                                 cost("training, min", &Record::training_minutes, two_digits),
                                 cost("generation, frames/s", &Record::frames_per_second, whole)};
  std::erase_if(columns, [&](const Column& column) {
    return std::none_of(rows.begin(), rows.end(),
                        [&](const ResultRow& row) { return std::isfinite(column.value(row)); });
  });
  return columns;
}

std::vector<Column> score_columns(const std::vector<ResultRow>& rows) {
  std::set<int64_t> all_horizons;
  std::vector<const Record*> records;
  for (const ResultRow& row : rows) {
    for (const int64_t frames : horizons(row.seeds[0]->metrics)) all_horizons.insert(frames);
    records.insert(records.end(), row.seeds.begin(), row.seeds.end());
  }
  std::vector<Column> columns;
  for (const int64_t horizon : all_horizons) {
    for (const std::string& metric : usual_metrics(records)) columns.push_back(score_column(metric, horizon));
  }
  return columns;
}

}  // namespace convssm::report
