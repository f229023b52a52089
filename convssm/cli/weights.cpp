#include "convssm/cli/weights.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/cli/size_option.h"
#include "convssm/metrics/weights.h"
#include "convssm/metrics/weights_import.h"
#include "convssm/run/import_vqgan.h"

namespace convssm::cli {
namespace {

struct WeightsOptions {
  std::string folder, name, from;
  std::string size, out;  // of a vqgan
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

void import_tokenizer(const WeightsOptions& o) {
  if (o.size.empty() || o.out.empty()) {
    fail(ErrorKind::usage,
         "a vqgan becomes a model folder: give --size, the height and width of its frames, and --out. "
         "Example: convssm weights import vqgan dmlab.pth --size 64x64 --out models/dmlab");
  }
  const auto [height, width] = parse_size(o.size);
  const run::ImportedVqGan done = run::import_vqgan({o.from, o.out, height, width});
  log_info("{}: {} tensors, {} of the training left out", done.description, done.tensors, done.left_out);
  log_info("written: {}; score it with: convssm evaluate {} data.path=DIR", done.path, o.out);
}

void import(const WeightsOptions& o) {
  if (o.name == "vqgan") return import_tokenizer(o);
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
  chosen->add_option("--size", o->size, "vqgan: height and width of its frames, as 64x64")->type_name("HxW");
  chosen->add_option("--out", o->out, "vqgan: the folder that becomes its model")->type_name("DIR");
  std::string names;
  for (const metrics::WeightInfo& info : metrics::all_weights()) names += (names.empty() ? "" : ", ") + info.name;
  chosen->add_option("name", o->name, "Which: " + names + "; or vqgan, a tokenizer of the layout of taming")
      ->required();
  chosen
      ->add_option("from", o->from,
                   "The downloaded file: .pth (zip format) or .safetensors; for i3d the prefix of the TensorFlow "
                   "checkpoint, as model.ckpt")
      ->required();
  chosen->footer(
      "Examples:\n  convssm weights import squeezenet squeezenet1_1-b8a52dc0.pth\n"
      "  convssm weights import i3d kinetics-i3d/data/checkpoints/rgb_scratch/model.ckpt\n"
      "  convssm weights import vqgan dmlab.pth --size 64x64 --out models/dmlab");
  chosen->callback([o] { import(*o); });
  command->footer("Examples:\n  convssm weights\n  convssm weights import vgg16 vgg16-397923af.pth");
  command->callback([o, chosen] {
    if (!chosen->parsed()) list(o->folder);
  });
}

}  // namespace convssm::cli
