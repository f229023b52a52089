// A model in a file: safetensors with the parameters as `model.<name>` and, in the header, how to build it again
// (`config`: the model section, `frames`: size and value range of the frames). Checkpoints are such files too.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"

namespace convssm::models {

struct ModelRecipe {
  nlohmann::json model;   // the `model` section of the config
  nlohmann::json frames;  // {"channels", "height", "width", "low", "high"}
  nlohmann::json config;  // the whole config of the run that made it
  int64_t step = 0;       // of training
};

// Parameters and buffers as `model.<name>`.
std::vector<io::LazyArray> model_arrays(const Model& model);
io::Metadata recipe_metadata(const ModelRecipe& recipe);

// Fills the parameters and buffers of `model`; Error(data) names the first that is missing or has another shape.
void load_arrays(Model& model, const io::SafetensorsFile& file);

void save_model(const std::string& path, const Model& model, const ModelRecipe& recipe);

struct LoadedModel {
  std::shared_ptr<Model> model;  // in eval mode
  ModelRecipe recipe;
  std::string path;      // of the file that was read
  std::string checksum;  // of that file
};

// `path` is a model file, a checkpoint, a run folder, whose newest good checkpoint (or that of `step`) is taken, or an
// exported folder, whose model.safetensors is.
// `core_changes` replace options of its core, which must not change a parameter.
LoadedModel load_model(const std::string& path, int64_t step = -1,
                       const nlohmann::json& core_changes = nlohmann::json::object());

}  // namespace convssm::models
