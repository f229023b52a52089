#include "convssm/cli/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/log.h"
#include "convssm/base/terminal.h"
#include "convssm/report/model_card.h"
#include "convssm/run/export.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  run::ExportOptions options;
  std::string licence;
};

double megabytes(const std::string& path) { return static_cast<double>(fs::file_size(path)) / 1e6; }

void run(const ExportCommand& command) {
  const std::string& out = command.options.out;
  run::Exported exported = run::export_run(command.options);
  const std::string card = out + "/README.md";
  if (fs::exists(card)) {
    exported.notes.push_back(card + " was there and is kept; remove it to have it written anew");
  } else {
    replace_file(card, report::model_card(out, command.licence));
    exported.files.push_back("README.md");
  }
  for (const std::string& note : exported.notes) log_info("{}", note);
  double all = 0;
  for (const std::string& name : exported.files) all += megabytes(out + "/" + name);
  fmt::print("{}: {}; {:.2f} MB, of which weights {:.2f} MB\n", printable(out), fmt::join(exported.files, ", "), all,
             megabytes(out + "/model.safetensors"));
}

}  // namespace

void add_export(CLI::App& app) {
  auto* command = app.add_subcommand("export", "Make a small folder of a run, to keep or to give away");
  auto c = std::make_shared<ExportCommand>();
  command->add_option("run", c->options.run, "Run folder")->required();
  command->add_option("--out", c->options.out, "Folder for the export; its name is that of the model")->required();
  command->add_option("--step", c->options.step, "Checkpoint of this step instead of the newest");
  command->add_option("--licence", c->licence, "Of the weights, for the model card");
  command->add_flag("--force", c->options.force, "Replace the export in the folder; its README.md is kept");
  command->footer(
      "Examples:\n  convssm export runs/digits --out pretrained/digits --licence Apache-2.0\n"
      "  convssm generate pretrained/digits --context pretrained/digits/context.npy --frames 600 --out future.gif\n"
      "Weights without the state of the optimizer, config, log, scores (evaluate the run before), a context to try\n"
      "it with, and a model card, README.md. Absolute paths of the data become names of files.");
  command->callback([c] { run(*c); });
}

}  // namespace convssm::cli
