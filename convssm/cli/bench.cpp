#include "convssm/cli/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/threads.h"
#include "convssm/bench/bench_models.h"
#include "convssm/bench/harness.h"
#include "convssm/bench/results.h"
#include "convssm/ops/isa.h"

namespace convssm::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> only;
  std::string json;
  bench::Settings settings;
};

std::vector<bench::Group> chosen_groups(const std::vector<std::string>& only) {
  std::vector<bench::Group> chosen;
  std::vector<std::string> names;
  for (const auto& group : bench::all_groups()) {
    names.emplace_back(group.name);
    const bool named = std::find(only.begin(), only.end(), group.name) != only.end();
    if (named || (only.empty() && group.by_default)) chosen.push_back(group);
  }
  for (const std::string& name : only) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    fail(ErrorKind::usage, "[bench] --only expects some of {}, got '{}'", fmt::join(names, ","), name);
  }
  return chosen;
}

// Small numbers keep their digits.
std::string number(double value) {
  return value != 0 && std::abs(value) < 0.1 ? fmt::format("{:.2g}", value) : fmt::format("{:.2f}", value);
}

void print(const bench::Row& row) {
  const bool compared = row.reference > 0;
  fmt::print("{:<36} {:>10} {:<8} {:>10} {:>8} {:>8}  {}\n", row.name, number(row.value), row.unit,
             compared ? number(row.reference) : "", compared ? number(row.ratio) : "",
             row.spread > 0 ? fmt::format("±{:.2f}", row.spread) : "", row.what);
  std::fflush(stdout);
}

void check_models(const std::vector<std::string>& models) {
  const auto& names = bench::paper_names();
  for (const std::string& model : models) {
    if (std::find(names.begin(), names.end(), model) != names.end()) continue;
    fail(ErrorKind::usage, "[bench] --models expects some of {}, got '{}'", fmt::join(names, ","), model);
  }
}

void run(const BenchOptions& options) {
  check_models(options.settings.models);
  const auto groups = chosen_groups(options.only);
  fmt::print("{} threads, {}; {} rounds in turns; ratio = reference / value, ± half the interquartile range\n",
             threads(), ops::isa_name(), options.settings.rounds);
  fmt::print("{:<36} {:>10} {:<8} {:>10} {:>8} {:>8}  {}\n", "name", "value", "unit", "reference", "ratio", "spread",
             "reference is");
  std::vector<bench::Row> rows;
  for (const auto& group : groups) {
    group.run(options.settings, [&](const bench::Row& row) {
      print(row);
      rows.push_back(row);
    });
  }
  if (!options.json.empty()) bench::write_rows(options.json, rows, options.settings.rounds);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure speeds of this machine against their limits");
  std::string groups = "Groups to measure, separated by commas (those marked * only when named):";
  for (const auto& group : bench::all_groups())
    groups += fmt::format("\n{}{} - {}", group.name, group.by_default ? "" : "*", group.summary);
  const std::string models =
      fmt::format("Models to measure in cost and scaling, of {}", fmt::join(bench::paper_names(), ","));
  command->add_option("--only", options->only, groups)->delimiter(',');
  command->add_option("--models", options->settings.models, models)->delimiter(',');
  command->add_option("--json", options->json, "Also write the rows to this file");
  command->add_option("--rounds", options->settings.rounds, "How often each pair is measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->footer("Example:\n  convssm bench --only scan,layer --json bench.json");
  command->callback([options] { run(*options); });
}

}  // namespace convssm::cli
