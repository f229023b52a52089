// Results as Markdown tables of a page. The best of a column is bold by its printed digits, so that two equal numbers
// are never told apart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "convssm/report/markdown.h"
#include "convssm/report/results.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

struct Shown {
  bool spread = false;    // ± behind the mean
  bool horizons = false;  // in the heads of columns
};

std::string head_of(const Column& column, const Shown& shown) {
  if (column.group.empty()) return column.title;
  if (!shown.horizons) return column.title + better_arrow(column.better);
  return fmt::format("{}{} {}", column.title, better_arrow(column.better),
                     column.group.substr(0, column.group.find(' ')));
}

std::string cell_of(const ResultRow& row, const Column& column, const std::string& best, const Shown& shown) {
  const Value value = column.value(row);
  if (!std::isfinite(value.mean)) return row.trivial && column.group.empty() ? "" : "–";
  std::string text = column.text(value.mean);
  if (text == best) text = "**" + text + "**";
  if (shown.spread && std::isfinite(value.spread)) text += " ± " + column.text(value.spread);
  return text;
}

std::string table(const std::vector<ResultRow>& rows, const std::vector<Column>& columns, const Shown& shown) {
  Cells heads = {"model"};
  std::vector<std::string> best;
  for (const Column& column : columns) {
    heads.push_back(head_of(column, shown));
    best.push_back(best_text(rows, column));
  }
  std::string out = markdown_head(heads);
  for (const ResultRow& row : rows) {
    Cells cells = {markdown_text(row.label)};
    for (size_t i = 0; i < columns.size(); ++i) cells.push_back(cell_of(row, columns[i], best[i], shown));
    out += markdown_row(cells);
  }
  return out;
}

std::vector<ResultRow> joined(std::vector<ResultRow> rows, const std::vector<ResultRow>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

// What ± means, for those rows that have it.
std::string spread_note(const std::vector<ResultRow>& rows) {
  std::string names;
  for (const ResultRow& row : rows) {
    if (row.seeds.size() < 2) continue;
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", row.label, row.seeds.size());
  }
  if (names.empty()) return "";
  return fmt::format("\n± is half the range between seeds ({}), their mean stands before it; other rows are one run.\n",
                     names);
}

std::vector<Column> costs(const std::vector<ResultRow>& rows, const std::set<std::string>& titles) {
  auto columns = cost_columns(rows);
  std::erase_if(columns, [&](const Column& column) { return !titles.contains(column.title); });
  return columns;
}

// For rows that do not compete.
std::vector<Column> without_best(std::vector<Column> columns) {
  for (Column& column : columns) column.title += better_arrow(column.better), column.better = 0;
  return columns;
}

}  // namespace

std::string table_block(const std::vector<Record>& records) {
  const auto rows = model_rows(records, "table");
  if (rows.empty()) return "";
  const auto scored = joined(rows, trivial_rows(rows));
  std::string out = table(rows, cost_columns(rows), {});
  for (const int64_t horizon : all_horizons(rows)) {
    out += fmt::format("\n**The first {} generated frames**\n\n", horizon);
    out += table(scored, score_columns(rows, horizon), {.spread = true, .horizons = false});
  }
  return out + spread_note(rows);
}

std::string short_block(const std::vector<Record>& records) {
  const auto rows = model_rows(records, "table");
  if (rows.empty()) return "";
  return table(joined(rows, trivial_rows(rows)), score_columns(rows), {.spread = false, .horizons = true});
}

std::string seeds_block(const std::vector<Record>& records) {
  std::vector<ResultRow> lines;
  for (const ResultRow& row : model_rows(records, "table")) {
    if (row.seeds.size() < 2) continue;
    for (const Record* record : row.seeds) {
      lines.push_back({seed_label(*record), "", {record}, false});
    }
  }
  return lines.empty() ? "" : table(lines, without_best(score_columns(lines)), {.spread = false, .horizons = true});
}

std::string ablations_block(const std::vector<Record>& records) {
  const auto rows = model_rows(records, "ablation");
  if (rows.empty()) return "";
  auto columns = costs(rows, {"parameters", "training, min"});
  for (Column& column : score_columns(rows)) columns.push_back(std::move(column));
  return table(rows, columns, {.spread = false, .horizons = true});
}

std::string rates_block(const std::vector<Record>& records) {
  std::vector<ResultRow> lines;
  for (const ResultRow& row : model_rows(records, "table")) {
    const std::string own = row.seeds.size() > 1 ? seed_label(*row.seeds[0]) : row.label;
    std::vector<ResultRow> tried = {{own, "", {row.seeds[0]}, false}};
    for (const ResultRow& other : model_rows(records, "rate")) {
      if (other.seeds[0]->of == row.seeds[0]->row) tried.push_back({row.label, "", other.seeds, false});
    }
    std::ranges::stable_sort(tried, {}, [](const ResultRow& line) { return line.seeds[0]->lr.value_or(0); });
    if (tried.size() > 1) lines.insert(lines.end(), tried.begin(), tried.end());
  }
  if (lines.empty()) return "";
  auto columns = costs(lines, {"lr"});
  for (Column& column : without_best(score_columns(lines))) columns.push_back(std::move(column));
  return table(lines, columns, {.spread = false, .horizons = true});
}

}  // namespace convssm::report
