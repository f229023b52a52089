// A model in a file: safetensors with the parameters and buffers as `model.<name>` and, in the header, how to build it again
// (`model`: the section of the config, `frames`: size, channels and units of the frames). Checkpoints are such files too;
// they may hold the running average of the weights besides, as `average.<name>`.
// Format 1 has one range of values for all channels; 2, written where that does not do, a name and a range for each.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"

namespace convssm::run {

struct ModelRecipe {
  nlohmann::json model;      // the `model` section of the config
  data::FrameFormat frames;  // that it takes and gives
  nlohmann::json config;     // the whole config of the run that made it
  int64_t step = 0;          // of training

  std::string weights = "trained";  // what the values are: as trained, or their running "average"
};

// Parameters and buffers as `model.<name>`.
std::vector<io::LazyArray> model_arrays(const models::Model& model);
io::Metadata recipe_metadata(const ModelRecipe& recipe);

// Fills the parameters and buffers of `model`, with `averaged` from the average where there is one. Error(data) names the
// first that is missing or has another shape.
void load_arrays(models::Model& model, const io::SafetensorsFile& file, bool averaged = false);

void save_model(const std::string& path, const models::Model& model, const ModelRecipe& recipe);

struct LoadOptions {
  int64_t step = -1;                                  // the checkpoint of this step; -1: the newest
  nlohmann::json changes = nlohmann::json::object();  // to the `model` section: see ModelInfo::changeable
  bool averaged = true;                               // the averaged weights, if training kept an average
  at::Device device = at::kCPU;
};

struct LoadedModel {
  std::shared_ptr<models::Model> model;  // in eval mode
  ModelRecipe recipe;
  data::FrameFormat trained;  // the frames of its training; those of the recipe are what it takes (frame_size.h)
  std::string path;           // of the file that was read
  std::string checksum;       // of that file
};

// `path` is a model file, a checkpoint, a run folder, whose newest good checkpoint (or that of `step`) is taken, or an
// exported folder, whose model.safetensors is. Error(data) if it does not have the checksum that it says of itself, or that
// the file beside it does (step-N.json, export.json). Error(usage) for a change that a trained model cannot take.
LoadedModel load_model(const std::string& path, const LoadOptions& options = {});

// Error(data) unless frames of this format are what the model was trained on.
void check_frames(const LoadedModel& loaded, const data::FrameFormat& found);

}  // namespace convssm::run
