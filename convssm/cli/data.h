// convssm data: make a dataset, or say what is in a file and how it would be read.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::cli {

void add_data(CLI::App& app);

// What makes the clips of make and inspect: settings as key=value, of a world or another dataset.
struct MadeClips {
  nlohmann::json options;  // of the dataset, with its name
  uint64_t seed = 1;
};

// Settings change the options, which may have a seed. `world` is the name if there is none; without both it is moving-mnist.
// Error(usage) for what is not key=value.
MadeClips parse_made_clips(const std::string& world, const std::vector<std::string>& settings,
                           nlohmann::json options = nlohmann::json::object());

// One clip of a world as a picture or an animation with its map, and what is in it.
struct WorldLook {
  std::string world, png, gif, split = "train";
  std::vector<std::string> settings;
  uint64_t clip = 0;
  int64_t frames = 300;
};
void look_at_world(const WorldLook& look);

// The sub-commands of it.
void add_data_make(CLI::App& data);
void add_data_inspect(CLI::App& data);
void add_data_encode(CLI::App& data);
void add_data_convert(CLI::App& data);

}  // namespace convssm::cli
