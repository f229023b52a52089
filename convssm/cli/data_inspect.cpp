// convssm data inspect: what a file or folder holds, and how it would be read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/terminal.h"
#include "convssm/cli/data.h"
#include "convssm/cli/program.h"
#include "convssm/data/inspect.h"
#include "convssm/io/png.h"
#include "convssm/io/yaml.h"
#include "convssm/run/first_config.h"
#include "convssm/run/memory_outlook.h"

namespace convssm::cli {
namespace {

struct InspectOptions {
  std::string path, key, layout, png, json, config;
  WorldLook look;
  std::vector<std::string> settings;
};

constexpr int64_t strip_frames = 16;

// A config is edited by its owner: it is never written over.
void write_config(const std::string& path, const std::string& config) {
  if (std::filesystem::exists(path)) fail(ErrorKind::usage, "{} exists; give another name for the config", path);
  replace_file(path, config);
  fmt::print("\nA config to begin with: {}\nTo train on it:         convssm train {}\n", path, path);
}

void run(const InspectOptions& o) {
  if (!o.look.world.empty()) {
    WorldLook look = o.look;
    look.png = o.png;
    look.settings = o.settings;
    if (!o.path.empty()) look.settings.insert(look.settings.begin(), o.path);  // it has no path: a setting
    return look_at_world(look);
  }
  if (o.path.empty()) fail(ErrorKind::usage, "[data inspect] a file or folder is required, or --world maze");
  if (!o.look.gif.empty()) {
    fail(ErrorKind::usage, "[data inspect] --gif is for worlds; give --world maze or --world terrain");
  }
  nlohmann::json options{{"path", o.path}};
  if (!o.key.empty()) options["key"] = o.key;
  if (!o.layout.empty()) options["layout"] = o.layout;
  for (const std::string& assignment : o.settings) io::set_override(options, assignment);
  const data::Inspection found = data::inspect(options);
  for (const std::string& line : data::inspection_lines(found)) fmt::print("{}\n", printable(line));
  std::fflush(stdout);
  const bool codes = !found.codes.none();     // a model of codes is chosen by its tokenizer
  const bool missing = found.values.nan > 0;  // what is no problem, then, is a pixel that was not measured
  const std::string config = !found.problem.empty() ? "" : codes ? found.yaml : run::first_config(found.yaml, missing);
  if (!o.json.empty()) {
    nlohmann::json json = data::inspection_json(found);
    json["config"] = config;
    replace_file(o.json, json.dump(2) + "\n");
  }
  if (!found.problem.empty()) fail(ErrorKind::data, "{}", found.problem);
  if (!codes) {
    const std::string outlook = run::memory_outlook(config);
    if (!outlook.empty()) fmt::print("{:<10} {}\n", "memory", outlook);
  }
  if (!o.config.empty()) {
    write_config(o.config, config);
  } else {
    fmt::print("\n# {}\n{}",
               codes ? "The section `data` of a config for a model of codes"
                     : "A config to begin with (--config own.yaml writes it): convssm train own.yaml",
               config);
  }
  if (!o.png.empty()) io::write_png(o.png, data::frame_strip(found, strip_frames));
}

}  // namespace

void add_data_inspect(CLI::App& data) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* command =
      data.add_subcommand("inspect", "What a file or folder holds, how it is read, and a config to train on it");
  command->add_option("path", o->path,
                      "A file of arrays (.npy, .npz, .h5), fields (.nc, .zarr, .grib), a video (.mp4, .avi, .mkv, "
                      ".gif, ...), a picture (.png, .jpg, .tif, "
                      ".ppm, ...) or an IDX file, or a folder");
  command->add_option("settings", o->settings,
                      "Options of the dataset `folder`, as stride=2 size=64 on_error=skip, or of a world and its seed");
  command->add_option("--key", o->key, "The array of .npz files that holds the clips; by default it is looked for");
  command->add_option("--layout", o->layout, data::layout_letters_text + std::string("; by default it is guessed"));
  command->add_option("--png", o->png, "Draw frames of the first clip into this file")->type_name("FILE");
  command->add_option("--json", o->json, "Write the findings to this file too")->type_name("FILE");
  command->add_option("--config", o->config, "Write a config to begin with to this file instead of the terminal")
      ->type_name("FILE");
  command->add_option("--world", o->look.world, "Look at a clip of a world that renders itself: maze or terrain");
  command->add_option("--gif", o->look.gif, "Of a world: a .gif or .mp4 of the clip beside its map")->type_name("FILE");
  command->add_option("--clip", o->look.clip, "Of a world: which clip")->capture_default_str();
  command->add_option("--split", o->look.split, "Of a world: train, valid or test")->capture_default_str();
  command->add_option("--frames", o->look.frames, "Of a world: how many")
      ->check(positive_number())
      ->capture_default_str();
  command->footer(
      "Examples:\n  convssm data inspect recordings --png frames.png\n"
      "  convssm data inspect recordings --config own.yaml && convssm train own.yaml\n"
      "  convssm data inspect episodes actions_align=taken_at on_error=skip\n"
      "  convssm data inspect --world maze protocol=loop --gif maze.gif --png maze.png");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
