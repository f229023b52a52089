// convssm data make: clips of a dataset as files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/base/threads.h"
#include "convssm/cli/data.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/program.h"
#include "convssm/data/dataset.h"
#include "convssm/data/write_clips.h"
#include "convssm/io/yaml.h"
#include "convssm/worlds/world.h"

namespace convssm::cli {
namespace {

constexpr int64_t world_frames = 300;  // of a clip, as in the published experiments

struct MakeOptions {
  data::WriteOptions write;
  std::string world, split = "train", out;
  uint64_t valid_clips = 0, test_clips = 0;
  std::vector<std::string> settings;
};

// As many different clips as are asked for.
void lift_limits(nlohmann::json& options) {
  for (const char* key : {"clips", "valid_clips", "test_clips"}) {
    if (!options.contains(key)) options[key] = 0;
  }
}

bool is_world(const nlohmann::json& name) {
  return std::ranges::any_of(worlds::all_worlds(), [&](const worlds::WorldInfo& world) { return name == world.name; });
}

bool is_one_file(const std::string& out) { return out.ends_with(".npy") || out.ends_with(".npz"); }

// Where to; with --out what stands in its place is the first setting.
void take_target(MakeOptions& o) {
  if (!o.out.empty() && !o.write.out.empty()) o.settings.insert(o.settings.begin(), o.write.out);
  if (!o.out.empty()) o.write.out = o.out;
  if (o.write.out.empty() || (o.out.empty() && o.write.out.find('=') != std::string::npos))
    fail(ErrorKind::usage, "[data make] where to? Give a folder or a file first, or as --out; got '{}'", o.write.out);
  if ((o.valid_clips > 0 || o.test_clips > 0) && is_one_file(o.write.out))
    fail(ErrorKind::usage, "[data make] --valid-clips and --test-clips need a folder, got '{}'", o.write.out);
}

// One split; false if it was stopped.
bool make_split(MakeOptions& o, const data::Dataset& dataset, data::Split split, uint64_t clips,
                const StopRequest& stop) {
  o.write.split = split;
  o.write.clips = clips;
  o.write.stop = [&stop] { return stop.asked(); };
  Progress progress(fmt::format("make {}", data::name(split)), static_cast<int64_t>(clips));
  const uint64_t done =
      data::write_clips(dataset, o.write, [&](uint64_t n) { progress.update(static_cast<int64_t>(n)); });
  progress.finish();
  if (done == clips) {
    fmt::print("{}: {} clips of {} frames in {}\n", data::name(split), clips, o.write.frames, o.write.out);
    return true;
  }
  log_info("stopped after {} of {} clips; the same command with --resume goes on", done, clips);
  return false;
}

void run(MakeOptions& o) {
  take_target(o);
  MadeClips made = parse_made_clips(o.world, o.settings);
  const bool world = is_world(data::find_dataset(made.options).name);
  if (made.options["name"] == "moving-mnist" || world) lift_limits(made.options);
  if (o.write.frames == 0 && !world) fail(ErrorKind::usage, "[data make] --frames is required: frames of each clip");
  if (o.write.frames == 0) o.write.frames = world_frames;
  if (o.write.workers == 0) o.write.workers = hardware_threads();
  const auto dataset = data::make_dataset(made.options, made.seed);
  o.write.recipe = nlohmann::json{{"data", made.options}, {"seed", made.seed}, {"frames", o.write.frames}}.dump();
  const data::Split split = data::parse_split(o.split);
  for (const std::string& line : dataset->summary()) log_info("{}", line);
  const StopRequest stop;
  const uint64_t clips = o.write.clips;
  bool all = make_split(o, *dataset, split, clips, stop);
  if (all && o.valid_clips > 0) all = make_split(o, *dataset, data::Split::valid, o.valid_clips, stop);
  if (all && o.test_clips > 0) make_split(o, *dataset, data::Split::test, o.test_clips, stop);
  set_exit_status(stop.exit_code());
}

}  // namespace

MadeClips parse_made_clips(const std::string& world, const std::vector<std::string>& settings, nlohmann::json options) {
  MadeClips made{std::move(options)};
  for (const std::string& setting : settings) io::set_override(made.options, setting);
  if (made.options.contains("seed")) {
    const auto seed = made.options["seed"];
    made.options.erase("seed");
    if (!seed.is_number_integer() || seed < 0)
      fail(ErrorKind::usage, "[data make] seed must be a whole number, got {}", seed.dump());
    made.seed = seed;
  }
  if (!made.options.contains("name")) made.options["name"] = world.empty() ? "moving-mnist" : world;
  return made;
}

void add_data_make(CLI::App& data) {
  auto o = std::make_shared<MakeOptions>();
  CLI::App* command = data.add_subcommand("make", "Write clips of a dataset to files");
  command->add_option("folder", o->write.out,
                      "A folder for one .npz file per clip, or one file.npz or file.npy for all");
  command->add_option("--out", o->out, "The same, as an option");
  std::string names = "Options of the dataset and its seed, as key=value; name is one of:";
  for (const auto& dataset : data::all_datasets()) names += fmt::format("\n{} - {}", dataset.name, dataset.summary);
  command->add_option("options", o->settings, names);
  command->add_option("--clips", o->write.clips, "How many clips")->required()->check(positive_number());
  command->add_option("--frames", o->write.frames, "Frames of each clip; of a world 300 by default")
      ->check(positive_number());
  command->add_option("--world", o->world, "A world that renders itself: maze or terrain; the same as name=maze");
  command->add_option("--split", o->split, "train, valid or test")->capture_default_str();
  command->add_option("--valid-clips", o->valid_clips, "Also this many clips of the split valid");
  command->add_option("--test-clips", o->test_clips, "Also this many clips of the split test");
  command->add_option("--workers", o->write.workers, "Threads; 0: as many as there are")->capture_default_str();
  command->add_flag("--compress", o->write.compress, "Compress the .npz files");
  command->add_flag("--resume", o->write.resume, "Go on where a run with the same options was stopped");
  command->add_flag("--force", o->write.force, "Replace clips that are there");
  command->footer(
      "Examples:\n"
      "  convssm data make digits --clips 10000 --frames 300 --compress\n"
      "  convssm data make digits --clips 1024 --frames 1300 --compress --split test\n"
      "  convssm data make small.npz digits=1 image_size=32 digit_size=16 seed=7 --clips 100 --frames 20\n"
      "  convssm data make --world maze --clips 1000 --valid-clips 50 --test-clips 100 --out mazes --compress");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
