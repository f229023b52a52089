// What the sections mean is known to their owners; here is only what a run adds: names and seeds that were left out.
#include "convssm/run/config.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/registry.h"

namespace convssm::run {

Config Config::from_json(const nlohmann::json& json) {
  Config config;
  nlohmann::json train = nlohmann::json::object();
  OptionReader read("config", json);
  read("seed", config.seed);
  read("model", config.model);
  read("data", config.data);
  read("train", train);
  read("evaluate", config.evaluate);
  read.finish();
  for (const char* section : {"model", "data"}) {
    if (!json.contains(section)) fail(ErrorKind::usage, "[config] there is no section '{}'", section);
  }
  config.train = train::TrainOptions::from_json(train);
  if (!config.model.contains("name")) config.model["name"] = "pixel";
  if (!config.model.contains("seed")) config.model["seed"] = config.seed;
  if (!config.data.contains("seed")) config.data["seed"] = 1u;
  return config;
}

nlohmann::json Config::to_json() const {
  return {{"seed", seed}, {"model", model}, {"data", data}, {"train", train.to_json()}, {"evaluate", evaluate}};
}

std::shared_ptr<const data::Dataset> make_dataset(const Config& config) {
  nlohmann::json options = config.data;
  const nlohmann::json seed = options.value("seed", nlohmann::json(1u));
  if (!seed.is_number_integer() || seed < 0)
    fail(ErrorKind::usage, "[data] seed must be a whole number, got {}", seed.dump());
  options.erase("seed");
  return data::make_dataset(options, seed.get<uint64_t>());
}

std::shared_ptr<models::Model> make_model(const Config& config, const data::FrameFormat& frames) {
  return models::make_model(config.model, frames);
}

namespace {

// Values by their place. A group without options says nothing, so it has none; a list without values is one.
nlohmann::json flat(const nlohmann::json& json) {
  nlohmann::json values = nlohmann::json::object();
  const nlohmann::json all = json.flatten();  // empty groups and lists become null
  for (const auto& item : all.items()) {
    const nlohmann::json& found = json.at(nlohmann::json::json_pointer(item.key()));
    if (!found.is_object()) values[item.key()] = found;
  }
  return values;
}

}  // namespace

std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& after) {
  const nlohmann::json a = flat(before), b = flat(after);
  std::vector<std::string> changed;
  const auto add = [&](std::string key, const std::string& from, const std::string& to) {
    std::replace(key.begin(), key.end(), '/', '.');
    changed.push_back(fmt::format("{}: {} -> {}", key.substr(1), from, to));
  };
  for (const auto& item : a.items()) {
    if (!b.contains(item.key())) add(item.key(), item.value().dump(), "nothing");
    if (b.contains(item.key()) && b[item.key()] != item.value())
      add(item.key(), item.value().dump(), b[item.key()].dump());
  }
  for (const auto& item : b.items()) {
    if (!a.contains(item.key())) add(item.key(), "nothing", item.value().dump());
  }
  return changed;
}

bool may_change(const std::string& difference) {
  return difference.starts_with("train.") || difference.starts_with("evaluate.");
}

}  // namespace convssm::run
