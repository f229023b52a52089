#include "convssm/cli/serve_start.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/log.h"
#include "convssm/cli/data.h"
#include "convssm/cli/generate_start.h"
#include "convssm/data/world_clips.h"
#include "convssm/data/write_clips.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContextFrames = 25;  // as `convssm export` has it, if the config does not say

// Of the config that the model was trained with; a file may hold anything, or nothing.
nlohmann::json trained_value(const run::LoadedModel& loaded, const char* where) {
  const nlohmann::json::json_pointer pointer(where);
  const nlohmann::json& config = loaded.recipe.config;
  return config.contains(pointer) ? config[pointer] : nlohmann::json();
}

bool is_world(const nlohmann::json& options) {
  if (!options.is_object() || !options.contains("name") || !options["name"].is_string()) return false;
  return std::ranges::any_of(worlds::all_worlds(), [&](const auto& info) { return info.name == options["name"]; });
}

// The world whose clips `data encode` or `data make` put into a folder, with its seed; nothing if it is none.
nlohmann::json world_of_folder(const nlohmann::json& section) {
  const nlohmann::json path = section.is_object() ? section.value("path", nlohmann::json()) : nlohmann::json();
  const auto made = path.is_string() ? data::made_from(path.get<std::string>()) : std::nullopt;
  return made && is_world(*made) ? *made : nlohmann::json::object();
}

// data.size=5 -> size=5
std::vector<std::string> world_settings(const std::vector<std::string>& overrides) {
  std::vector<std::string> settings;
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("data.")) settings.push_back(assignment.substr(5));
  }
  return settings;
}

// --world maze, or data.name=maze; "" if neither is given.
std::string named_world(const ServeCommand& c, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    if (c.world.empty() && setting.starts_with("name=")) return setting.substr(5);
  }
  return c.world;
}

// What the command says, the training data, or what that was encoded from.
std::optional<MadeClips> find_world(const ServeCommand& c, const run::LoadedModel& loaded) {
  const auto settings = world_settings(c.overrides);
  const std::string named = named_world(c, settings);
  const nlohmann::json trained = trained_value(loaded, "/data");
  nlohmann::json options = is_world(trained) ? trained : world_of_folder(trained);
  if (!named.empty() && options.value("name", named) != named) options = nlohmann::json::object();
  if (named.empty() && !is_world(options)) {
    if (settings.empty()) return std::nullopt;
    fail(ErrorKind::usage,
         "'data.{}': the model does not say which world it is of; give --world maze or --world terrain",
         settings.front());
  }
  return parse_made_clips(named, settings, options);
}

int64_t context_frames(const ServeCommand& c, const run::LoadedModel& loaded) {
  if (c.context_frames > 0) return c.context_frames;
  for (const char* where : {"/evaluate/settings/0/context", "/evaluate/context"}) {
    const nlohmann::json value = trained_value(loaded, where);
    if (value.is_number_integer() && value.get<int64_t>() > 0) return value.get<int64_t>();
  }
  return kContextFrames;
}

std::unique_ptr<serve::Beginnings> in_world(const ServeCommand& c, const run::LoadedModel& loaded, MadeClips made) {
  const std::string name = made.options.value("name", "");
  data::take_clips_options(name, made.options);  // of clips, not of the world
  const auto worlds = worlds::make_worlds(made.options, made.seed);
  run::check_frames(loaded, {3, worlds->view().height, worlds->view().width});
  const int64_t frames = context_frames(c, loaded);
  for (const std::string& line : worlds->summary()) log_info("world: {}", line);
  log_info("walks begin after {} frames of the world's own walker", frames);
  return serve::beginnings_in(name, worlds, frames);
}

// What an exported folder has; "" if there is none.
std::string exported_context(const std::string& model) {
  for (const char* name : {"context.npz", "context.npy"}) {
    const fs::path path = fs::path(model) / name;
    if (fs::exists(path)) return path.string();
  }
  return "";
}

}  // namespace

std::unique_ptr<serve::Beginnings> find_beginnings(const ServeCommand& c, const run::LoadedModel& loaded) {
  if (c.context.empty()) {
    if (const auto made = find_world(c, loaded)) return in_world(c, loaded, *made);
  }
  GenerateCommand reading;
  reading.context = c.context.empty() ? exported_context(c.model) : c.context;
  reading.reading.frames = c.context_frames;
  reading.frames = 0;  // whoever walks will say the actions
  if (reading.context.empty()) {
    fail(ErrorKind::usage,
         "{} is of no world that is known here, and has no context beside it; give --context FILE to go on from, or "
         "--world NAME if it is of one",
         c.model);
  }
  return serve::beginnings_after(make_start(reading, loaded).context);
}

bool mask_learned(const run::LoadedModel& loaded) {
  const nlohmann::json dropout = trained_value(loaded, "/train/action_dropout");
  return dropout.is_number() && dropout.get<double>() > 0;
}

}  // namespace convssm::cli
