// convssm data encode: the codes that a tokenizer makes of clips, as files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/data.h"
#include "convssm/cli/device_option.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/program.h"
#include "convssm/ops/device.h"
#include "convssm/run/config.h"
#include "convssm/run/encode.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {
namespace {

struct EncodeCommand {
  std::string model, data, world, device = "cpu";
  std::vector<std::string> settings;
  data::WriteOptions write;
  uint64_t clips = 0, valid_clips = 0, test_clips = 0;
};

// A file or folder, a world, or what the tokenizer was trained on.
MadeClips chosen_data(const EncodeCommand& c, const run::LoadedModel& loaded) {
  std::vector<std::string> settings = c.settings;
  std::string path = c.data;
  if (path.find('=') != std::string::npos) settings.insert(settings.begin(), std::exchange(path, ""));
  if (!c.world.empty() && !path.empty()) fail(ErrorKind::usage, "[data encode] give a folder or --world, not both");
  if (!c.world.empty()) return parse_made_clips(c.world, settings);
  if (!path.empty()) return parse_made_clips("folder", settings, {{"path", path}});
  return parse_made_clips("", settings, run::Config::from_json(loaded.recipe.config).data);
}

// All clips of a split that has an end, or as many as are asked for.
uint64_t clips_of(const EncodeCommand& c, const data::Dataset& dataset, data::Split split) {
  const uint64_t asked = split == data::Split::train   ? c.clips
                         : split == data::Split::valid ? c.valid_clips
                                                       : c.test_clips;
  const bool any = c.clips + c.valid_clips + c.test_clips > 0;
  if (any) return asked;
  if (dataset.size(split) != data::any_count) return dataset.size(split);
  fail(ErrorKind::usage,
       "[data encode] the dataset has clips without end; give --clips, --valid-clips or --test-clips");
}

void run(EncodeCommand& c) {
  const run::LoadedModel loaded = run::load_model(c.model, {.device = ops::parse_device(c.device)});
  const MadeClips made = chosen_data(c, loaded);
  const auto dataset = data::make_dataset(made.options, made.seed);
  for (const std::string& line : dataset->summary()) log_info("data: {}", line);
  run::check_frames(loaded, dataset->format());
  c.write.recipe = nlohmann::json{
      {"tokenizer", loaded.checksum},
      {"data", made.options},
      {"seed", made.seed},
      {"frames",
       c.write.frames}}.dump();
  const StopRequest stop;
  c.write.stop = [&stop] { return stop.asked(); };
  for (const data::Split split : data::all_splits) {
    c.write.split = split;
    c.write.clips = clips_of(c, *dataset, split);
    if (c.write.clips == 0 || stop.asked()) continue;
    Progress progress(fmt::format("encode {}", data::name(split)), run::count_encoded_frames(*dataset, c.write));
    const uint64_t done =
        run::encode_clips(*loaded.model, *dataset, c.write, [&](int64_t frames) { progress.update(frames, "frames"); });
    progress.finish();
    if (done == c.write.clips) {
      fmt::print("{}: codes of {} clips in {}/{}\n", data::name(split), done, c.write.out, data::name(split));
    } else {
      log_info("stopped after {} of {} clips; the same command with --resume goes on", done, c.write.clips);
    }
  }
  set_exit_status(stop.exit_code());
}

}  // namespace

void add_data_encode(CLI::App& data) {
  auto c = std::make_shared<EncodeCommand>();
  CLI::App* command = data.add_subcommand("encode", "Write the codes that a tokenizer makes of clips");
  command->add_option("tokenizer", c->model, "Run folder, exported folder or model file of a tokenizer")->required();
  command->add_option("data", c->data, "A file or folder of recordings; by default what the tokenizer was trained on");
  command->add_option("settings", c->settings, "Options of the dataset and its seed, as key=value");
  command->add_option("--out", c->write.out, "The folder for one .npz file per clip")->required();
  command->add_option("--world", c->world, "Clips of a world that renders itself: maze or terrain");
  command->add_option("--frames", c->write.frames, "Frames of each clip, from its beginning; by default all")
      ->check(positive_number());
  command->add_option("--clips", c->clips, "Only this many clips of the split train; with it none of the others ...");
  command->add_option("--valid-clips", c->valid_clips, "... but this many of valid");
  command->add_option("--test-clips", c->test_clips, "... and this many of test");
  command->add_flag("--resume", c->write.resume, "Go on where a run with the same options was stopped");
  command->add_flag("--force", c->write.force, "Replace clips that are there");
  command->add_option("--device", c->device, kDeviceHelp)->capture_default_str();
  command->footer(
      "Examples:\n"
      "  convssm data encode runs/tokenizer recordings --out codes\n"
      "  convssm data encode runs/tokenizer --world maze --frames 300 --clips 1000 --test-clips 100 --out codes");
  command->callback([c] { run(*c); });
}

}  // namespace convssm::cli
