// The header of a file says how to build the model, so loading needs no config and no data.
#include "convssm/run/model_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/version.h"
#include "convssm/io/checksum.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/run/checkpoint.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, at::Tensor>> named_values(const models::Model& model) {
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
    if (get("format") != 1 && get("format") != 2) {
      fail(ErrorKind::data, "{} has model format {}, this program ({}) knows 1 and 2", path, get("format").dump(),
           kVersion);
    }
    ModelRecipe recipe{get("model"), data::FrameFormat::from_json(get("frames")), get("config"), get("step")};
    if (metadata.contains("weights")) recipe.weights = get("weights");
    return recipe;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{}: its description is not valid: {}", path, error.what());
  }
}

bool holds_averages(const io::SafetensorsFile& file) {
  return std::ranges::any_of(file.names(), [](const std::string& name) { return name.starts_with("average."); });
}

// Options of the `model` section that were given, as "core.window".
void check_changes(const nlohmann::json& model, const nlohmann::json& changes) {
  if (changes.empty()) return;
  const std::vector<std::string>& known = models::find_model(model).changeable;
  const nlohmann::json flat = changes.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    if (std::ranges::find(known, key) != known.end()) continue;
    fail(ErrorKind::usage, "'model.{}={}': a trained model cannot be changed, but for {}", key, value.dump(),
         known.empty() ? "nothing" : fmt::format("model.{}", fmt::join(known, " and model.")));
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

std::vector<io::LazyArray> model_arrays(const models::Model& model) {
  std::vector<io::LazyArray> arrays;
  for (const auto& [name, value] : named_values(model)) arrays.push_back(io::lazy_array(name, value));
  return arrays;
}

io::Metadata recipe_metadata(const ModelRecipe& recipe) {
  const nlohmann::json frames = recipe.frames.to_json();
  return {{"format", frames["channels"].is_number() ? "1" : "2"},
          {"version", nlohmann::json(kVersion).dump()},
          {"model", recipe.model.dump()},
          {"frames", frames.dump()},
          {"config", recipe.config.dump()},
          {"step", std::to_string(recipe.step)},
          {"weights", nlohmann::json(recipe.weights).dump()}};
}

void load_arrays(models::Model& model, const io::SafetensorsFile& file, bool averaged) {
  at::NoGradGuard no_grad;
  for (auto& [name, value] : named_values(model)) {
    const std::string average = "average." + name.substr(std::string("model.").size());
    const bool take_average = averaged && file.contains(average);
    at::Tensor(value).copy_(io::read_tensor(file, take_average ? average : name, value.sizes()));
  }
}

void save_model(const std::string& path, const models::Model& model, const ModelRecipe& recipe) {
  io::stream_safetensors(path, model_arrays(model), recipe_metadata(recipe));
}

LoadedModel load_model(const std::string& path, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.path = file_of(path, options.step);
  const io::SafetensorsFile file(loaded.path);
  loaded.recipe = read_recipe(file, loaded.path);
  if (options.step >= 0 && loaded.recipe.step != options.step) {
    fail(ErrorKind::data, "{} holds the model of step {}, that of step {} is asked for", loaded.path,
         loaded.recipe.step, options.step);
  }
  check_changes(loaded.recipe.model, options.changes);
  loaded.recipe.model.merge_patch(options.changes);
  loaded.model = models::make_model(loaded.recipe.model, loaded.recipe.frames);
  load_arrays(*loaded.model, file, options.averaged);
  if (options.averaged && holds_averages(file)) loaded.recipe.weights = "average";
  loaded.model->to(options.device);
  loaded.model->eval();
  loaded.checksum = io::file_checksum(loaded.path);
  return loaded;
}

}  // namespace convssm::run
