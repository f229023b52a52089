#include "convssm/cli/models.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "convssm/cores/registry.h"
#include "convssm/io/yaml.h"
#include "convssm/models/flops.h"
#include "convssm/models/registry.h"
#include "convssm/run/config.h"
#include "convssm/run/tokenizer_section.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cli {
namespace {

void list_all() {
  fmt::print("Models (model.name)\n");
  for (const auto& model : models::all_models()) fmt::print("  {:<12} {}\n", model.name, model.summary);
  fmt::print("\nTemporal cores (model.core.name)\n");
  for (const auto& core : cores::all_cores()) fmt::print("  {:<12} {}\n", core.name, core.summary);
  fmt::print("\nDatasets (data.name)\n");
  for (const auto& dataset : data::all_datasets()) fmt::print("  {:<12} {}\n", dataset.name, dataset.summary);
  fmt::print("\nParameters and arithmetic: convssm models configs/moving_mnist/*.yaml\n");
}

// A tokenizer in the config tells the frames without the data.
data::FrameFormat sizes_of_frames(const run::Config& config) {
  return config.model.contains("tokenizer") ? run::frames_of(config) : run::make_dataset(config)->format();
}

// "-" of a model that makes neither frames nor codes: one of codes without a tokenizer.
std::string flops_text(models::Model& model, const data::FrameFormat& frames) {
  if (model.as_forecaster() == nullptr && model.as_tokenizer() == nullptr) return "-";
  return fmt::format("{:.3f}", 1e-9 * static_cast<double>(models::flops_per_frame(model, frames)));
}

// Parameters that learn. GFLOPs: of one more frame, forward; for attention the first frames, it grows with those seen.
void print_sizes(const std::vector<std::string>& configs) {
  fmt::print("{:>13} {:>13}  {:<12} {}\n", "parameters", "GFLOPs/frame", "model", "config");
  for (const std::string& path : configs) {
    const auto config = run::with_tokenizer(run::Config::from_json(io::read_yaml(path)));
    const auto format = sizes_of_frames(config);
    const ssm::WithoutValues without;
    const auto model = run::make_model(config, format);
    fmt::print("{:>13} {:>13}  {:<12} {}\n", fmt::group_digits(models::learned_count(*model)),
               flops_text(*model, format), model->label(), path);
    std::fflush(stdout);
  }
}

}  // namespace

void add_models(CLI::App& app) {
  auto* command = app.add_subcommand("models", "List what can be trained; count parameters and arithmetic of configs");
  auto configs = std::make_shared<std::vector<std::string>>();
  command->add_option("configs", *configs, "Configs to be counted");
  command->footer("Examples:\n  convssm models\n  convssm models configs/moving_mnist/*.yaml");
  command->callback([configs] { configs->empty() ? list_all() : print_sizes(*configs); });
}

}  // namespace convssm::cli
