#include "convssm/cli/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "convssm/base/atomic_file.h"
#include "convssm/metrics/registry.h"

namespace convssm::cli {
namespace {

nlohmann::json to_json(const metrics::MetricInfo& metric, const metrics::WeightFolder& weights) {
  return {{"name", metric.name},
          {"definition", metric.definition},
          {"input", metric.input},
          {"reference", metric.reference},
          {"better", metric.better},
          {"weights", metric.weights},
          {"ready", metrics::missing_weights(metric, weights).empty()}};
}

void run(const std::string& folder, const std::string& json) {
  const metrics::WeightFolder weights(folder);
  nlohmann::json list = nlohmann::json::array();
  for (const metrics::MetricInfo& metric : metrics::all_metrics()) {
    const auto missing = metrics::missing_weights(metric, weights);
    fmt::print("{:<14} {}; {} is better\n", metric.name, metric.definition, metric.better > 0 ? "more" : "less");
    fmt::print("{:<14}   takes {}; as {}\n", "", metric.input, metric.reference);
    if (!missing.empty()) fmt::print("{:<14}   needs weights: {} (convssm weights)\n", "", fmt::join(missing, ", "));
    list.push_back(to_json(metric, weights));
  }
  if (!json.empty()) replace_file(json, list.dump(2) + "\n");
}

}  // namespace

void add_metrics(CLI::App& app) {
  auto* command = app.add_subcommand("metrics", "List the metrics: definition, input and reference of each");
  auto folder = std::make_shared<std::string>(), json = std::make_shared<std::string>();
  command->add_option("--weights", *folder, "Folder of trained weights (see convssm weights)")->type_name("DIR");
  command->add_option("--json", *json, "Write the list to this file too")->type_name("FILE");
  command->footer(
      "Example:\n  convssm metrics\nA name carries the convention: evaluate and compare report these names.");
  command->callback([folder, json] { run(*folder, *json); });
}

}  // namespace convssm::cli
