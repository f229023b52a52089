// The header of a file says how to build the model, so loading needs no config and no data.
#include "convssm/run/model_file.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/read_file.h"
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
    return parse_json(found->second, fmt::format("{}: '{}' of its header", path, key));
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

// Its tensors are in the file, so the model is not much larger; values are drawn in float64 before they are read.
std::shared_ptr<models::Model> build_model(const LoadedModel& loaded, bool changed) {
  constexpr uint64_t for_each_byte = 16, at_least = uint64_t{256} << 20;
  const uint64_t memory = for_each_byte * fs::file_size(loaded.path) + at_least;
  try {
    return models::make_model(loaded.recipe.model, loaded.recipe.frames, memory);
  } catch (const Error& error) {
    if (changed) throw;  // by the caller
    fail(ErrorKind::data, "{}: the model that it describes cannot be built: {}", loaded.path, error.what());
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

// The file beside a model that knows its checksum, and where: step-N.json of a checkpoint, export.json of an exported
// folder; "" for models of other names.
std::pair<fs::path, nlohmann::json::json_pointer> record_of(const fs::path& model) {
  if (model.filename() == "model.safetensors")
    return {model.parent_path() / "export.json", nlohmann::json::json_pointer("/weights/checksum")};
  if (!model.filename().string().starts_with("step-")) return {fs::path(), nlohmann::json::json_pointer()};
  return {fs::path(model).replace_extension(".json"), nlohmann::json::json_pointer("/checksum")};
}

// The checksum of a model file, as it was when it was written by all that is known. A file of bare weights, or one that
// was copied away from its record, has no record or none but its own.
std::string verified_checksum(const io::SafetensorsFile& file, const std::string& path) {
  file.verify();
  const std::string found = io::file_checksum(path);
  const auto [record, place] = record_of(path);
  if (record.empty() || !fs::exists(record)) return found;
  const nlohmann::json said = parse_json(read_file(record.string()), record.string());
  if (!said.contains(place) || said[place] == found) return found;
  fail(ErrorKind::data, "{} has the checksum {}, but {} says {}: one of the two was damaged or changed", path, found,
       record.string(), said[place].dump());
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
  io::stream_safetensors(path, model_arrays(model), recipe_metadata(recipe), io::Stamp::checksum);
}

LoadedModel load_model(const std::string& path, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.path = file_of(path, options.step);
  const io::SafetensorsFile file(loaded.path);
  loaded.checksum = verified_checksum(file, loaded.path);
  loaded.recipe = read_recipe(file, loaded.path);
  loaded.trained = loaded.recipe.frames;
  if (options.step >= 0 && loaded.recipe.step != options.step) {
    fail(ErrorKind::data, "{} holds the model of step {}, that of step {} is asked for", loaded.path,
         loaded.recipe.step, options.step);
  }
  check_changes(loaded.recipe.model, options.changes);
  loaded.recipe.model.merge_patch(options.changes);
  loaded.model = build_model(loaded, !options.changes.empty());
  load_arrays(*loaded.model, file, options.averaged);
  if (options.averaged && holds_averages(file)) loaded.recipe.weights = "average";
  loaded.model->to(options.device);
  loaded.model->eval();
  return loaded;
}

void check_frames(const LoadedModel& loaded, const data::FrameFormat& found) {
  const data::FrameFormat& model = loaded.recipe.frames;
  if (!model.same_size(found)) {
    fail(ErrorKind::data, "the model was trained on frames of {}, the dataset has {}", model.size_text(),
         found.size_text());
  }
  if (model.same_ranges(found)) return;
  fail(ErrorKind::data, "the model was trained with values from {} as [-1,1], the dataset gives {}; set {}",
       model.range_text(), found.range_text(), model.range_options());
}

}  // namespace convssm::run
