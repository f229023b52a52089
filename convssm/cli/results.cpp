#include "convssm/cli/results.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/log.h"
#include "convssm/metrics/registry.h"
#include "convssm/report/picture.h"
#include "convssm/report/plot.h"
#include "convssm/report/results.h"
#include "convssm/report/strips.h"

namespace convssm::cli {
namespace {

struct ResultsCommand {
  std::vector<std::string> runs, only;
  std::string chart, setting, strips, json, metric = "psnr_f01";
  int64_t clip = 0;
};

void print(const std::vector<report::Record>& records) {
  const std::string text = report::results_text(records);
  if (text.empty()) fail(ErrorKind::data, "[results] no run has scores (metrics.json); run convssm evaluate RUN first");
  fmt::print("{}", text);
  std::set<const report::Record*> shown;
  for (const report::ResultRow& row : report::single_rows(records)) shown.insert(row.seeds[0]);
  for (const report::Record& record : records) {
    if (shown.contains(&record) || record.part == "sweep") continue;
    if (!record.evaluated())
      log_info("left out: {} has no metrics.json; run convssm evaluate {}", record.row, record.folder);
    else
      log_info("left out: {0}, scored on other data; --only {0} shows it", record.row);
  }
  for (const report::Record& record : records) {
    if (!shown.contains(&record) || !record.stale()) continue;
    log_warning("the scores of {} are those of step {}, its newest checkpoint is of step {}; run convssm evaluate {}",
                record.row, *record.scored_step, *record.newest_step, record.folder);
  }
  for (const std::string& line : report::protocol_differences(records)) log_warning("{}", line);
}

void write_chart(const ResultsCommand& command, const std::vector<report::Record>& records) {
  const report::Chart chart =
      report::horizon_chart(records, metrics::find_metric(command.metric).name, command.setting);
  if (!report::has_points(chart)) {
    fail(ErrorKind::data, "[results] no run has a curve of {}; take another --metric, or evaluate with it",
         command.metric);
  }
  report::write_chart_png(command.chart, chart);
  log_info("written: {}", command.chart);
}

void write_strips(const ResultsCommand& command, const std::vector<report::Record>& records) {
  std::vector<const report::Record*> rows;
  for (const auto& row : report::drawn_rows(records)) rows.push_back(row.seeds[0]);
  io::write_png(command.strips, report::strips_image(rows, command.clip));
  log_info("written: {}", command.strips);
}

void write_json(const std::string& path, const std::vector<report::Record>& records) {
  auto list = nlohmann::json::array();
  for (const report::Record& record : records) list.push_back(report::to_json(record));
  replace_file(path, list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  log_info("written: {}", path);
}

void run(const ResultsCommand& command) {
  metrics::find_metric(command.metric);  // mistakes first
  for (const std::string& path : {command.chart, command.strips}) {
    if (path.empty() || file_ending(path) == ".png") continue;
    fail(ErrorKind::usage, "[results] pictures are .png files; got '{}'", path);
  }
  const auto records = report::only_rows(report::read_records(command.runs), command.only);
  print(records);
  if (!command.chart.empty()) write_chart(command, records);
  if (!command.strips.empty()) write_strips(command, records);
  if (!command.json.empty()) write_json(command.json, records);
}

}  // namespace

void add_results(CLI::App& app) {
  auto* command = app.add_subcommand("results", "Runs side by side: table, curves over the horizon, pictures");
  auto o = std::make_shared<ResultsCommand>();
  command->add_option("runs", o->runs, "Run folders, or folders of run folders")->required();
  command->add_option("--only", o->only, "Only these rows and their seeds, separated by commas")->delimiter(',');
  command->add_option("--chart", o->chart, "Draw a metric over the horizon into this .png file");
  command->add_option("--metric", o->metric, "The metric of --chart; see convssm metrics")->capture_default_str();
  command->add_option("--setting", o->setting, "The setting of --chart, where runs have several; by default the first");
  command->add_option("--strips", o->strips, "Draw the forecasts of one clip below the truth into this .png file");
  command->add_option("--clip", o->clip, "The clip of --strips")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--json", o->json, "Also write all that is known of the runs to this file");
  command->footer(
      "Examples:\n  convssm results runs\n"
      "  convssm results runs/a runs/b --chart curves.png --metric ssim_gauss11 --strips strips.png\n"
      "  convssm results runs --json runs.json");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
