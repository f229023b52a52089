// All models by name. A new model adds one line to the table in registry.cpp, or register_model in a program of its own.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/models/model.h"

namespace convssm::models {

struct ModelInfo {
  std::string name;
  std::string summary;
  std::function<std::shared_ptr<Model>(const nlohmann::json& options, const data::FrameFormat& frames)> make;
  std::vector<std::string> changeable = {};  // options that a trained model may change, as "core.window": they make no
                                             // parameter another
  std::function<void(const nlohmann::json& options)> check = {};  // throws for options that `make` does not know
  bool diagnostics = false;  // whether it forecasts channels that it does not see (data/frame_format.h)
};

const std::vector<ModelInfo>& all_models();

// Adds a model of the caller's own; Error(usage) if the name is taken or empty, or nothing makes it. References from
// find_model end with it.
void register_model(ModelInfo info);

// The one that options["name"] names (default: pixel); an unknown name is an error that names the nearest.
const ModelInfo& find_model(const nlohmann::json& options);

// Throws for an unknown model and for options that nobody knows, before there are frames.
void check_model(const nlohmann::json& options);

// options: the `model` section of a config, {"name": "pixel", "encoder": {...}, "core": {"name": "convs5", ...}, ...}.
// Error(usage) if tensors of more than `memory` bytes in all would have to be made on the way (0: four times what is
// available): options of a file may ask for anything.
std::shared_ptr<Model> make_model(const nlohmann::json& options, const data::FrameFormat& frames, uint64_t memory = 0);

}  // namespace convssm::models
