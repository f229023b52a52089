#include "convssm/cli/weights.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/metrics/weights.h"
#include "convssm/metrics/weights_import.h"

namespace convssm::cli {
namespace {

struct WeightsOptions {
  std::string folder, name, from;
};

void list(const std::string& folder) {
  const metrics::WeightFolder weights(folder);
  fmt::print("in {}\n", weights.folder());
  for (const metrics::WeightInfo& info : metrics::all_weights()) {
    if (weights.has(info.name)) {
      fmt::print("  {:<14} {}  {}\n", info.name, weights.checksum(info.name), info.file);
    } else {
      fmt::print("  {:<14} missing: {}\n", info.name, info.what);
      for (const std::string& step : info.steps) fmt::print("  {:<14}   {}\n", "", step);
    }
  }
}

void import(const WeightsOptions& o) {
  const metrics::WeightFolder folder(o.folder);
  const metrics::ImportedWeights done = metrics::import_weights(o.name, o.from, folder);
  log_info("{} tensors, {:.1f} MB: {}", done.tensors, static_cast<double>(done.bytes) / 1e6, done.path);
}

}  // namespace

void add_weights(CLI::App& app) {
  auto o = std::make_shared<WeightsOptions>();
  auto* command = app.add_subcommand("weights", "List the trained weights of metrics, or import downloaded ones");
  const char* where = "Folder of the weights; by default $CONVSSM_WEIGHTS, else ~/.local/share/convssm/weights";
  command->add_option("--weights", o->folder, where)->type_name("DIR");
  auto* chosen =
      command->add_subcommand("import", "Read a checkpoint without running any of it, and write safetensors");
  std::string names;
  for (const metrics::WeightInfo& info : metrics::all_weights()) names += (names.empty() ? "" : ", ") + info.name;
  chosen->add_option("name", o->name, "Which: " + names)->required();
  chosen
      ->add_option("from", o->from,
                   "The downloaded file: .pth (zip format) or .safetensors; for i3d the prefix of the TensorFlow "
                   "checkpoint, as model.ckpt")
      ->required();
  chosen->footer(
      "Examples:\n  convssm weights import squeezenet squeezenet1_1-b8a52dc0.pth\n"
      "  convssm weights import i3d kinetics-i3d/data/checkpoints/rgb_scratch/model.ckpt");
  chosen->callback([o] { import(*o); });
  command->footer("Examples:\n  convssm weights\n  convssm weights import vgg16 vgg16-397923af.pth");
  command->callback([o, chosen] {
    if (!chosen->parsed()) list(o->folder);
  });
}

}  // namespace convssm::cli
