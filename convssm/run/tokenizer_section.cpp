// The tokenizer is found twice: for its section before there is a model, for its weights when there is one.
#include "convssm/run/tokenizer_section.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/models/tokenizer.h"
#include "convssm/run/model_file.h"

namespace convssm::run {
namespace {

bool has_section(const Config& config) {
  return config.model.contains("tokenizer") && !config.model["tokenizer"].is_null();
}

models::TokenizerPart part_of(const LoadedModel& loaded) {
  const models::TokenizerPart part = loaded.model->tokenizer_part();
  if (!part) {
    fail(ErrorKind::usage, "[model] tokenizer: {} is no tokenizer but a {}; train one (configs/tokenizer)", loaded.path,
         loaded.model->description());
  }
  return part;
}

}  // namespace

Config with_tokenizer(const Config& config, const Config& before) {
  if (!has_section(config) || !config.model["tokenizer"].is_string()) return config;
  const std::string path = config.model["tokenizer"];
  Config found = config;
  if (has_section(before) && before.model["tokenizer"].is_object() &&
      before.model["tokenizer"].value("weights", "") == path) {
    found.model["tokenizer"] = before.model["tokenizer"];
    return found;
  }
  const LoadedModel loaded = load_model(path);
  // Of a model of codes: the tokenizer within it.
  nlohmann::json section = loaded.recipe.model;
  if (section.contains("tokenizer")) section = section["tokenizer"];
  section["frames"] = loaded.recipe.frames.to_json();
  section["hash"] = models::hash_of(part_of(loaded));
  section["weights"] = path;
  found.model["tokenizer"] = section;
  return found;
}

data::FrameFormat frames_of(const Config& config, const data::Dataset& dataset) {
  return has_section(config) ? frames_of(config) : dataset.format();
}

data::FrameFormat frames_of(const Config& config) {
  const nlohmann::json& section = config.model["tokenizer"];
  if (!section.is_object() || !section.contains("frames")) {
    fail(ErrorKind::usage, "[model] tokenizer: expected a path or a section with `frames`, got {}", section.dump());
  }
  return data::FrameFormat::from_json(section["frames"]);
}

void load_tokenizer(models::Model& model, const Config& config) {
  if (!has_section(config)) return;
  const nlohmann::json& section = config.model["tokenizer"];
  if (!section.contains("weights")) {
    fail(ErrorKind::usage,
         "[model] tokenizer: its sizes are there, its weights are not. Train one (convssm train "
         "configs/tokenizer/maze.yaml --run runs/tokenizer) and give it: model.tokenizer=runs/tokenizer");
  }
  const LoadedModel loaded = load_model(section["weights"]);
  const models::TokenizerPart from = part_of(loaded), to = model.tokenizer_part();
  const std::string hash = models::hash_of(from);
  if (section.contains("hash") && section["hash"] != hash) {
    fail(ErrorKind::usage, "[model] tokenizer: {} is another one now ({}) than the config says ({})", loaded.path, hash,
         section["hash"].dump());
  }
  at::NoGradGuard no_grad;
  const auto copy = [&](const auto& source, auto target) {
    for (const auto& item : source) target[item.key()].copy_(item.value());
  };
  copy(from.module->named_parameters(), to.module->named_parameters());
  copy(from.module->named_buffers(), to.module->named_buffers());
  log_info("tokenizer: {} ({})", loaded.path, hash);
}

}  // namespace convssm::run
