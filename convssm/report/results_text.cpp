// Results for a terminal. Columns are as wide as their longest cell, counted in characters and not in bytes: names and
// signs may be beyond ASCII.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "convssm/report/numbers.h"
#include "convssm/report/results.h"
#include "convssm/report/run_view.h"

namespace convssm::report {
namespace {

std::string right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, letters(text)), ' ') + text;
}

std::string left(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, letters(text)), ' ');
}

std::vector<std::string> cells_of(const std::vector<ResultRow>& rows, const Column& column) {
  std::vector<std::string> cells;
  for (const ResultRow& row : rows) {
    const double mean = column.value(row);
    cells.push_back(std::isfinite(mean) ? column.text(mean) : row.trivial && column.group.empty() ? "" : "-");
  }
  return cells;
}

const nlohmann::json& protocol_of(const Record& record) {
  static const nlohmann::json none = nlohmann::json::object();
  const auto found = record.metrics.find("protocol");
  return found != record.metrics.end() && found->is_object() ? *found : none;
}

constexpr const char* kProtocolKeys[] = {"samples", "context", "horizons", "settings",
                                         "real",    "pixels",  "split",    "frame_size"};

nlohmann::json protocol_value(const Record& record, const std::string& key) {
  const nlohmann::json otherwise = key == "real" ? nlohmann::json("originals") : nlohmann::json();  // in older files
  return protocol_of(record).value(key, otherwise);
}

std::optional<double> copy_score(const Record& record) {
  const nlohmann::json& first = first_setting(record.metrics);
  const auto frames = horizons(first);
  return frames.empty() ? std::nullopt : score(first, frames[0], "copy last frame", "psnr_f01");
}

// Where the score of a copy is from.
auto copy_place(const Record& record) {
  const nlohmann::json& first = first_setting(record.metrics);
  return std::pair(text_at(first, "name"), horizons(first));
}

// Everything in which evaluations can differ.
std::string signature(const Record& record) {
  std::string text;
  for (const char* key : kProtocolKeys) text += protocol_value(record, key).dump() + " ";
  const auto copy = copy_score(record);
  return text + (copy ? fmt::format("{:.4f}", *copy) : "");
}

// One of those that are scored as most are.
const Record* usual(const std::vector<ResultRow>& rows) {
  std::map<std::string, std::vector<const Record*>> kinds;
  for (const ResultRow& row : rows) kinds[signature(*row.seeds[0])].push_back(row.seeds[0]);
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto& most = std::ranges::max_element(kinds, fewer)->second;
  const auto before = [](const Record* a, const Record* b) {
    return a->place != b->place ? a->place < b->place : a->row < b->row;
  };
  return *std::ranges::min_element(most, before);
}

void add_differences(const Record& record, const Record& other, std::vector<std::string>& lines) {
  for (const char* key : kProtocolKeys) {
    const nlohmann::json ours = protocol_value(record, key), theirs = protocol_value(other, key);
    if (ours == theirs) continue;
    lines.push_back(
        fmt::format("{} was evaluated with {} {}, {} with {}", record.row, key, ours.dump(), other.row, theirs.dump()));
  }
  const auto ours = copy_score(record), theirs = copy_score(other);
  if (ours && theirs && std::abs(*ours - *theirs) > 1e-6 && copy_place(record) == copy_place(other)) {
    lines.push_back(
        fmt::format("{} was evaluated on other clips than {}: a copy of the last frame scores {:.4f}, {:.4f}",
                    record.row, other.row, *ours, *theirs));
  }
}

std::string table_text(std::vector<ResultRow> rows) {
  std::vector<Column> columns = cost_columns(rows);
  for (Column& column : score_columns(rows)) columns.push_back(std::move(column));
  for (ResultRow& row : trivial_rows(rows)) rows.push_back(std::move(row));
  size_t wide = 0;
  for (const ResultRow& row : rows) wide = std::max(wide, letters(row.label));
  std::string groups(wide, ' '), heads(wide, ' '), group;
  std::vector<std::string> lines;
  for (const ResultRow& row : rows) lines.push_back(left(row.label, wide));
  for (const Column& column : columns) {
    const auto cells = cells_of(rows, column);
    size_t width = letters(column.title);
    for (const std::string& cell : cells) width = std::max(width, letters(cell));
    if (column.group != group) {
      if (letters(groups) > letters(heads)) width += letters(groups) - letters(heads);  // below a long name of a group
      groups = left(groups, letters(heads)) + "  " + column.group;
      group = column.group;
    }
    heads += "  " + right(column.title, width);
    for (size_t i = 0; i < rows.size(); ++i) lines[i] += "  " + right(cells[i], width);
  }
  return fmt::format("{}\n{}\n{}\n", groups, heads, fmt::join(lines, "\n"));
}

}  // namespace

std::string results_text(const std::vector<Record>& records) {
  std::string text;
  for (const DataGroup& group : data_groups(single_rows(records))) {
    if (!text.empty()) text += "\n";
    if (!group.title.empty()) text += "data: " + group.title + "\n";
    text += table_text(group.rows);
  }
  return text;
}

std::vector<std::string> protocol_differences(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const DataGroup& group : data_groups(single_rows(records))) {
    const Record* most = usual(group.rows);
    for (const ResultRow& row : group.rows) add_differences(*row.seeds[0], *most, lines);
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace convssm::report
