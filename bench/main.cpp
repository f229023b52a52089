// convssm-bench, started by `convssm bench`: speeds of this machine against their limits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/bench_models.h"
#include "bench/harness.h"
#include "bench/results.h"
#include "convssm/base/error.h"
#include "convssm/base/threads.h"
#include "convssm/cli/program.h"
#include "convssm/ops/isa.h"

namespace convssm::bench {
namespace {

struct BenchOptions {
  std::vector<std::string> only;
  std::string json;
  Settings settings;
};

std::vector<Group> chosen_groups(const std::vector<std::string>& only) {
  std::vector<Group> chosen;
  std::vector<std::string> names;
  for (const auto& group : all_groups()) {
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

void print(const Row& row) {
  const bool compared = row.reference > 0;
  fmt::print("{:<40} {:>10} {:<8} {:>10} {:>8} {:>8}  {}\n", row.name, number(row.value), row.unit,
             compared ? number(row.reference) : "", compared ? number(row.ratio) : "",
             row.spread > 0 ? fmt::format("±{:.2f}", row.spread) : "", row.what);
  std::fflush(stdout);
}

void check_models(const std::vector<std::string>& models) {
  const auto& names = paper_names();
  for (const std::string& model : models) {
    if (std::find(names.begin(), names.end(), model) != names.end()) continue;
    fail(ErrorKind::usage, "[bench] --models expects some of {}, got '{}'", fmt::join(names, ","), model);
  }
}

void measure(const BenchOptions& options) {
  check_models(options.settings.models);
  const auto groups = chosen_groups(options.only);
  fmt::print("{} threads, {}; {} rounds in turns; ratio = reference / value, ± half the interquartile range\n",
             threads(), ops::isa_name(), options.settings.rounds);
  fmt::print("{:<40} {:>10} {:<8} {:>10} {:>8} {:>8}  {}\n", "name", "value", "unit", "reference", "ratio", "spread",
             "reference is");
  std::vector<Row> rows;
  for (const auto& group : groups) {
    group.run(options.settings, [&](const Row& row) {
      print(row);
      rows.push_back(row);
    });
  }
  if (!options.json.empty()) write_rows(options.json, rows, options.settings.rounds);
}

std::string groups_text() {
  std::string text = "Groups to measure, separated by commas (those marked * only when named):";
  for (const auto& group : all_groups())
    text += fmt::format("\n{}{} - {}", group.name, group.by_default ? "" : "*", group.summary);
  return text;
}

int run_bench(int argc, char** argv) {
  CLI::App app("Measures speeds of this machine against their limits.", "convssm bench");
  ops::RuntimeOptions runtime;
  BenchOptions options;
  cli::add_program_options(app, runtime);
  app.add_option("--only", options.only, groups_text())->delimiter(',');
  app.add_option("--models", options.settings.models,
                 fmt::format("Models to measure in cost, scaling and complexity, of {}", fmt::join(paper_names(), ",")))
      ->delimiter(',');
  app.add_option("--longest", options.settings.longest, "Frames of the longest clip in complexity, 25 or more")
      ->check(cli::positive_number())
      ->capture_default_str();
  app.add_option("--files", options.settings.files,
                 "Recordings to read in fields, files or folders of one variable; by default small ones that it writes")
      ->delimiter(',');
  app.add_option("--peer", options.settings.peer_mode,
                 "How PyTorch runs in the group peer: eager, compiled (torch.compile), or the best of both")
      ->check(CLI::IsMember({"best", "eager", "compiled"}))
      ->capture_default_str();
  app.add_option("--json", options.json, "Also write the rows to this file");
  app.add_option("--rounds", options.settings.rounds, "How often each pair is measured")
      ->check(cli::positive_number())
      ->capture_default_str();
  app.footer("Example:\n  convssm bench --only scan,layer --json bench.json");
  app.callback([&options] { measure(options); });
  return cli::parse_and_run(app, argc, argv);
}

}  // namespace
}  // namespace convssm::bench

int main(int argc, char** argv) {
  return convssm::cli::run_program([&] { return convssm::bench::run_bench(argc, argv); });
}
