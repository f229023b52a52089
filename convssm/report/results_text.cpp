// Results for a terminal. Columns are as wide as their longest cell, counted in characters and not in bytes: names and
// signs may be beyond ASCII.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

std::string results_text(const std::vector<Record>& records) {
  std::vector<ResultRow> rows = single_rows(records);
  if (rows.empty()) return "";
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

std::vector<std::string> protocol_differences(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  const Record* first = nullptr;
  for (const ResultRow& row : single_rows(records)) {
    const Record& record = *row.seeds[0];
    if (first == nullptr) first = &record;
    for (const char* key : {"samples", "context", "horizons", "pixels", "split"}) {
      const auto ours = protocol_of(record).value(key, nlohmann::json()),
                 theirs = protocol_of(*first).value(key, nlohmann::json());
      if (ours == theirs) continue;
      lines.push_back(fmt::format("{} was evaluated with {} {}, {} with {}", record.row, key, ours.dump(), first->row,
                                  theirs.dump()));
    }
    const auto frames = horizons(record.metrics);
    const auto other = frames.empty() ? std::nullopt : score(first->metrics, frames[0], "copy last frame", "psnr_f01");
    const auto same = frames.empty() ? std::nullopt : score(record.metrics, frames[0], "copy last frame", "psnr_f01");
    if (same && other && std::abs(*same - *other) > 1e-6) {
      lines.push_back(
          fmt::format("{} was evaluated on other clips than {}: a copy of the last frame scores {:.4f}, {:.4f}",
                      record.row, first->row, *same, *other));
    }
  }
  return lines;
}

}  // namespace convssm::report
