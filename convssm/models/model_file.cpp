#include "convssm/models/model_file.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/version.h"
#include "convssm/io/checksum.h"
#include "convssm/io/tensor.h"
#include "convssm/models/checkpoint.h"
#include "convssm/models/registry.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, at::Tensor>> named_values(const Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> values;
  for (const auto& item : model.named_parameters()) values.emplace_back("model." + item.key(), item.value());
  for (const auto& item : model.named_buffers()) values.emplace_back("model." + item.key(), item.value());
  return values;
}

ModelRecipe read_recipe(const io::SafetensorsFile& file, const std::string& path) {
  const auto& metadata = file.metadata();
  const auto get = [&](const char* key) -> nlohmann::json {
    const auto found = metadata.find(key);
    if (found == metadata.end()) {
      fail(ErrorKind::data, "{} is not a model of convssm: its header has no '{}' (a file of bare weights?)", path,
           key);
    }
    return nlohmann::json::parse(found->second);
  };
  try {
    if (get("format") != 1) {
      fail(ErrorKind::data, "{} has model format {}, this program ({}) knows 1", path, get("format").dump(), kVersion);
    }
    return {get("model"), get("frames"), get("config"), get("step").get<int64_t>()};
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{}: its description is not valid: {}", path, error.what());
  }
}

std::string file_of(const std::string& path, int64_t step) {
  std::error_code error;
  if (!fs::exists(path, error)) fail(ErrorKind::io, "no such run or model: {}", path);
  if (!fs::is_directory(path)) return path;
  const fs::path checkpoints = fs::path(path) / "checkpoints", exported = fs::path(path) / "model.safetensors";
  if (!fs::is_directory(checkpoints)) {
    if (fs::exists(exported)) return exported.string();
    fail(ErrorKind::data,
         "{} holds no model: it has neither checkpoints/ nor model.safetensors. Expected a run folder, an exported "
         "folder or a .safetensors file",
         path);
  }
  return find_checkpoint(checkpoints.string(), step).tensors;
}

}  // namespace

std::vector<io::LazyArray> model_arrays(const Model& model) {
  std::vector<io::LazyArray> arrays;
  for (const auto& [name, value] : named_values(model)) arrays.push_back(io::lazy_array(name, value));
  return arrays;
}

io::Metadata recipe_metadata(const ModelRecipe& recipe) {
  return {{"format", "1"},
          {"version", nlohmann::json(kVersion).dump()},
          {"model", recipe.model.dump()},
          {"frames", recipe.frames.dump()},
          {"config", recipe.config.dump()},
          {"step", std::to_string(recipe.step)}};
}

void load_arrays(Model& model, const io::SafetensorsFile& file) {
  at::NoGradGuard no_grad;
  for (auto& [name, value] : named_values(model)) {
    const at::Tensor found = io::to_tensor(file.read(name));
    if (found.sizes() != value.sizes()) {
      fail(ErrorKind::data, "the tensor '{}' has shape {}, this model needs {}: it is of another model", name,
           ops::shape_text(found.sizes()), ops::shape_text(value.sizes()));
    }
    at::Tensor(value).copy_(found);
  }
}

void save_model(const std::string& path, const Model& model, const ModelRecipe& recipe) {
  io::stream_safetensors(path, model_arrays(model), recipe_metadata(recipe));
}

LoadedModel load_model(const std::string& path, int64_t step, const nlohmann::json& core_changes) {
  LoadedModel loaded;
  loaded.path = file_of(path, step);
  const io::SafetensorsFile file(loaded.path);
  loaded.recipe = read_recipe(file, loaded.path);
  if (step >= 0 && loaded.recipe.step != step) {
    fail(ErrorKind::data, "{} holds the model of step {}, that of step {} is asked for", loaded.path,
         loaded.recipe.step, step);
  }
  if (!core_changes.empty()) loaded.recipe.model["core"].update(core_changes);
  const auto& frames = loaded.recipe.frames;
  try {
    loaded.model = make_model(
        loaded.recipe.model,
        {frames.at("channels").get<int64_t>(), frames.at("height").get<int64_t>(), frames.at("width").get<int64_t>()});
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{}: the description of its frames is not valid: {}", loaded.path, error.what());
  }
  load_arrays(*loaded.model, file);
  loaded.model->eval();
  loaded.checksum = io::file_checksum(loaded.path);
  return loaded;
}

}  // namespace convssm::models
