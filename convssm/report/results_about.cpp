// What stands around the tables of results: machine and protocol, learning rates that were tried, how to make a row
// again. All from the records, so that the page cannot claim what was not run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "convssm/report/markdown.h"
#include "convssm/report/numbers.h"
#include "convssm/report/results.h"
#include "convssm/report/run_view.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using nlohmann::json;

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string machine_text(const Record& record) {
  std::string text = text_at(record.about, "machine");
  if (text.empty()) text = text_at(record.status, "machine");
  const auto threads = number_at(record.about, "threads");
  if (text.empty() || !threads) return text;
  return fmt::format("{}, {} thread{}", text, *threads, *threads > 1 ? "s" : "");
}

// "PSNR `psnr_f01`, ...": the names carry the conventions.
std::string conventions(const std::vector<ResultRow>& rows) {
  std::vector<std::string> names;
  for (const std::string& metric : row_metrics(rows)) {
    names.push_back(fmt::format("{} is `{}`", metric_style(metric).title, metric));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string weights(const std::vector<ResultRow>& rows) {
  std::vector<std::string> names;
  for (const std::string& metric : row_metrics(rows)) {
    const json::json_pointer place("/protocol/metrics/" + metric + "/weights");
    for (const ResultRow& row : rows) {
      const json& metrics = row.seeds[0]->metrics;
      if (!metrics.contains(place) || !metrics[place].is_object()) continue;
      for (const auto& [name, checksum] : metrics[place].items()) {
        if (checksum.is_string()) add_once(names, fmt::format("{} `{}`", name, checksum.get<std::string>()));
      }
    }
  }
  return names.empty() ? "" : fmt::format("; weights of metrics {}", fmt::join(names, ", "));
}

std::string protocol_text(const std::vector<ResultRow>& rows) {
  const json& metrics = rows[0].seeds[0]->metrics;
  const json protocol = metrics.value("protocol", json::object());
  const auto count = [&](const char* key) { return short_number(number_at(protocol, key).value_or(std::nan(""))); };
  return fmt::format("{} clips of the test split, {} frames of context; {}{}.\n", count("samples"), count("context"),
                     conventions(rows), weights(rows));
}

struct Tried {
  std::map<double, std::string> scores;  // by learning rate
  double chosen = 0;
};

// The chosen rate is that of the row itself.
std::map<std::string, Tried> tried_rates(const std::vector<Record>& records) {
  std::map<std::string, Tried> rows;
  for (const Record& record : records) {
    if (record.part == "table" && record.lr) rows[record.row].chosen = *record.lr;
    if (record.part != "sweep" || !record.lr) continue;
    if (record.diverged)
      rows[record.of].scores[*record.lr] = "diverged";
    else if (record.validation_psnr)
      rows[record.of].scores[*record.lr] = fmt::format("{:.2f}", *record.validation_psnr);
    else if (record.validation_loss)
      rows[record.of].scores[*record.lr] = fmt::format("loss {}", short_number(*record.validation_loss));
  }
  return rows;
}

std::string label_of(const std::vector<Record>& records, const std::string& row) {
  for (const Record& record : records) {
    if (record.row == row) return record.label;
  }
  return row;
}

bool same_rate(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

}  // namespace

std::string about_block(const std::vector<Record>& records) {
  const auto rows = model_rows(records, "table");
  if (rows.empty()) return "";
  std::vector<std::string> machines, commits, versions;
  for (const Record& record : records) {
    add_once(machines, machine_text(record));
    add_once(commits, text_at(record.about, "commit"));
    add_once(versions, text_at(record.status, "version"));
  }
  std::string out = machines.empty() ? "" : fmt::format("{}; ", fmt::join(machines, "; "));
  out += fmt::format("convssm {}",
                     versions.empty() ? "of an unknown version" : fmt::format("{}", fmt::join(versions, ", ")));
  if (!commits.empty()) {
    out += fmt::format(", commit{} {}", commits.size() > 1 ? "s" : "", fmt::join(commits, ", "));
  }
  return out + ".\n" + protocol_text(rows);
}

std::string sweep_block(const std::vector<Record>& records) {
  const auto rows = tried_rates(records);
  std::vector<double> rates;
  std::vector<std::string> order;  // that of the table, then rows that are not in it
  for (const char* part : {"table", "sweep"}) {
    for (const Record& record : records) {
      const auto found = rows.find(record.of);
      if (record.part == part && found != rows.end() && !found->second.scores.empty()) add_once(order, record.of);
    }
  }
  if (order.empty()) return "";
  for (const auto& [row, tried] : rows) {
    for (const auto& [rate, score] : tried.scores) rates.push_back(rate);
  }
  std::sort(rates.begin(), rates.end());
  rates.erase(std::unique(rates.begin(), rates.end(), same_rate), rates.end());
  Cells heads = {"model"};
  for (const double rate : rates) heads.push_back("lr " + short_number(rate));
  std::string out = markdown_head(heads);
  for (const std::string& row : order) {
    const Tried& tried = rows.at(row);
    Cells cells = {markdown_text(label_of(records, row))};
    for (const double rate : rates) {
      const auto found = std::find_if(tried.scores.begin(), tried.scores.end(),
                                      [&](const auto& entry) { return same_rate(entry.first, rate); });
      const std::string text = found == tried.scores.end() ? "" : found->second;
      cells.push_back(!text.empty() && same_rate(tried.chosen, rate) ? "**" + text + "**" : text);
    }
    out += markdown_row(cells);
  }
  return out;
}

std::string rows_block(const std::vector<Record>& records, const std::string& folder) {
  std::string list, commands;
  for (const Record& record : records) {
    if (record.part == "sweep") continue;
    const std::string link = std::filesystem::proximate(record.folder, folder).generic_string();
    const std::string label = record.part == "seed" ? seed_label(record) : record.label;
    list += fmt::format("- {}: [{}]({}), `make results ROW={}`\n", label, record.row, link, record.row);
    if (!record.about.contains("commands") || !record.about["commands"].is_array()) continue;
    for (const json& command : record.about["commands"]) {
      if (command.is_string()) commands += fmt::format("{}\n", command.get<std::string>());
    }
  }
  if (list.empty() || commands.empty()) return list;
  return fmt::format("{}\n<details><summary>The commands that this runs</summary>\n\n```\n{}```\n\n</details>\n", list,
                     commands);
}

}  // namespace convssm::report
