// convssm data make: clips of a dataset as files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/cli/data.h"
#include "convssm/data/dataset.h"
#include "convssm/data/write_clips.h"
#include "convssm/io/yaml.h"

namespace convssm::cli {
namespace {

struct MakeOptions {
  data::WriteOptions write;
  std::string split = "train";
  std::vector<std::string> settings;
};

nlohmann::json parse_settings(const std::vector<std::string>& settings) {
  nlohmann::json options = nlohmann::json::object();
  for (const std::string& setting : settings) io::set_override(options, setting);
  return options;
}

uint64_t take_seed(nlohmann::json& options) {
  if (!options.contains("seed")) return 1;
  const auto seed = options["seed"];
  options.erase("seed");
  if (!seed.is_number_integer() || seed < 0)
    fail(ErrorKind::usage, "[data make] seed must be a whole number, got {}", seed.dump());
  return seed;
}

void run(MakeOptions& o) {
  nlohmann::json settings = parse_settings(o.settings);
  const uint64_t seed = take_seed(settings);
  if (!settings.contains("name")) settings["name"] = "moving-mnist";
  if (settings["name"] == "moving-mnist") {  // as many different clips as are asked for
    for (const char* key : {"clips", "valid_clips", "test_clips"}) {
      if (!settings.contains(key)) settings[key] = 0;
    }
  }
  const auto dataset = data::make_dataset(settings, seed);
  o.write.split = data::parse_split(o.split);
  for (const std::string& line : dataset->summary()) log_info("{}", line);
  Progress progress("make", static_cast<int64_t>(o.write.clips));
  data::write_clips(*dataset, o.write, [&](uint64_t done) { progress.update(static_cast<int64_t>(done)); });
  progress.finish();
  fmt::print("{} clips of {} frames in {}\n", o.write.clips, o.write.frames, o.write.out);
}

}  // namespace

void add_data_make(CLI::App& data) {
  auto o = std::make_shared<MakeOptions>();
  CLI::App* command = data.add_subcommand("make", "Write clips of a dataset to files");
  command->add_option("out", o->write.out, "A folder for one .npz file per clip, or one file.npz or file.npy for all")
      ->required();
  std::string names = "Options of the dataset and its seed, as key=value; name is one of:";
  for (const auto& dataset : data::all_datasets()) names += fmt::format("\n{} - {}", dataset.name, dataset.summary);
  command->add_option("options", o->settings, names);
  command->add_option("--clips", o->write.clips, "How many clips")->required()->check(CLI::PositiveNumber);
  command->add_option("--frames", o->write.frames, "Frames of each clip")->required()->check(CLI::PositiveNumber);
  command->add_option("--split", o->split, "train, valid or test")->capture_default_str();
  command->add_flag("--compress", o->write.compress, "Compress the .npz files");
  command->add_flag("--force", o->write.force, "Replace clips that are there");
  command->footer(
      "Examples:\n"
      "  convssm data make digits --clips 10000 --frames 300 --compress\n"
      "  convssm data make digits --clips 1024 --frames 1300 --compress --split test\n"
      "  convssm data make small.npz digits=1 image_size=32 digit_size=16 seed=7 --clips 100 --frames 20");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
