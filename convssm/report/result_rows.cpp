// A column is a function from a row to a value, and a row is one record or several of different seeds: the mean is taken
// in one place.
#include "convssm/report/result_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

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

// Where scores are: the name of a setting, and one of its horizons.
using Place = std::pair<std::string, int64_t>;

Column score_column(const std::string& metric, const Place& place) {
  const MetricStyle style = metric_style(metric);
  const Read read = [metric, place](const ResultRow& row, const Record& record) -> std::optional<double> {
    const nlohmann::json* setting = find_setting(record.metrics, place.first);
    if (setting == nullptr) return std::nullopt;
    return score(*setting, place.second, row.trivial ? row.forecaster : model_forecast(record.metrics), metric);
  };
  return {style.title, place.first.empty() ? fmt::format("{} frames ahead", place.second) : place.first,
          [read](const ResultRow& row) { return over_seeds(row, read); },
          [digits = style.decimals](double value) { return fmt::format("{:.{}f}", value, digits); }};
}

// Horizons ascending, then settings in the order of their files.
std::vector<Place> places_of(const std::vector<ResultRow>& rows) {
  std::set<int64_t> ahead;
  std::vector<Place> places, named;
  for (const ResultRow& row : rows) {
    for (const ScoredSetting& setting : scored_settings(row.seeds[0]->metrics)) {
      for (const int64_t frames : horizons(*setting.scores)) {
        const Place place{setting.name, frames};
        if (setting.name.empty())
          ahead.insert(frames);
        else if (std::ranges::find(named, place) == named.end())
          named.push_back(place);
      }
    }
  }
  for (const int64_t frames : ahead) places.emplace_back("", frames);
  places.insert(places.end(), named.begin(), named.end());
  return places;
}

// The columns in which some row has a number.
std::vector<Column> with_numbers(std::vector<Column> columns, const std::vector<ResultRow>& rows) {
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(rows, [&](const ResultRow& row) { return std::isfinite(column.value(row)); });
  });
  return columns;
}

// The best that the tokenizer of a model allows: not the same for all models of the same data.
constexpr const char* kCeiling = "tokenizer ceiling";

bool same_scores(const std::string& forecaster, const Record& a, const Record& b) {
  const nlohmann::json &x = first_setting(a.metrics), &y = first_setting(b.metrics);
  const auto frames = horizons(x);
  if (frames.empty() || frames != horizons(y)) return false;
  return std::ranges::all_of(usual_metrics({&a, &b}), [&](const std::string& metric) {
    return score(x, frames[0], forecaster, metric) == score(y, frames[0], forecaster, metric);
  });
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
  for (const char* part : {"table", "seed", "ablation", "variant", "rate"}) {
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
        const auto row = std::ranges::find_if(rows, [&](const ResultRow& other) {
          return other.forecaster == name && (name != kCeiling || same_scores(name, *other.seeds[0], *record));
        });
        const bool another = row == rows.end() && std::ranges::find(rows, name, &ResultRow::forecaster) != rows.end();
        if (row == rows.end()) {
          rows.push_back({another ? fmt::format("{} of {}", name, model.label) : name, name, {record}, true});
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
  return with_numbers(std::move(columns), rows);
}

std::vector<Column> score_columns(const std::vector<ResultRow>& rows) {
  std::vector<const Record*> records;
  for (const ResultRow& row : rows) records.insert(records.end(), row.seeds.begin(), row.seeds.end());
  std::vector<Column> columns;
  for (const Place& place : places_of(rows)) {
    for (const std::string& metric : usual_metrics(records)) columns.push_back(score_column(metric, place));
  }
  return with_numbers(std::move(columns), rows);
}

}  // namespace convssm::report
