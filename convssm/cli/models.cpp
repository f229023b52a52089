#include "convssm/cli/models.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "convssm/cores/registry.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/train/config.h"

namespace convssm::cli {
namespace {

void list_all() {
  fmt::print("Models (model.name)\n");
  for (const auto& model : models::all_models()) fmt::print("  {:<12} {}\n", model.name, model.summary);
  fmt::print("\nTemporal cores (model.core.name)\n");
  for (const auto& core : cores::all_cores()) fmt::print("  {:<12} {}\n", core.name, core.summary);
  fmt::print("\nDatasets (data.name)\n");
  for (const auto& dataset : data::all_datasets()) fmt::print("  {:<12} {}\n", dataset.name, dataset.summary);
  fmt::print("\nParameter counts: convssm models configs/moving_mnist/*.yaml\n");
}

void count_parameters(const std::vector<std::string>& configs) {
  fmt::print("{:>13}  {:<12} {}\n", "parameters", "core", "config");
  for (const std::string& path : configs) {
    const auto config = train::Config::from_json(io::read_yaml(path));
    const auto model = train::make_model(config, train::make_dataset(config)->format());
    fmt::print("{:>13}  {:<12} {}\n", fmt::group_digits(models::parameter_count(*model)),
               config.model.at("core").value("name", "?"), path);
    std::fflush(stdout);
  }
}

}  // namespace

void add_models(CLI::App& app) {
  auto* command = app.add_subcommand("models", "List what can be trained; count the parameters of configs");
  auto configs = std::make_shared<std::vector<std::string>>();
  command->add_option("configs", *configs, "Configs whose parameters are counted");
  command->footer("Examples:\n  convssm models\n  convssm models configs/moving_mnist/*.yaml");
  command->callback([configs] { configs->empty() ? list_all() : count_parameters(*configs); });
}

}  // namespace convssm::cli
