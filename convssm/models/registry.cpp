#include "convssm/models/registry.h"

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/models/pixel_predictor.h"

namespace convssm::models {
namespace {

std::shared_ptr<Model> make_pixel(const nlohmann::json& json, const FrameSize& frames) {
  PixelOptions options = PixelOptions::from_json(json);
  options.channels = frames.channels, options.height = frames.height, options.width = frames.width;
  return std::make_shared<PixelPredictorImpl>(options);
}

}  // namespace

const std::vector<ModelInfo>& all_models() {
  static const std::vector<ModelInfo> table{
      {"pixel", "encoder, temporal core, decoder on pixels, L1 + L2 loss", make_pixel},
  };
  return table;
}

std::shared_ptr<Model> make_model(const nlohmann::json& options, const FrameSize& frames) {
  if (!options.is_object()) fail(ErrorKind::usage, "[model] expected a group of options, got {}", options.dump());
  nlohmann::json own = options;
  const nlohmann::json given = own.contains("name") ? own["name"] : "pixel";
  own.erase("name");
  const std::string name = given.is_string() ? given.get<std::string>() : given.dump();
  std::vector<std::string> names;
  for (const ModelInfo& model : all_models()) {
    if (name == model.name) return model.make(own, frames);
    names.emplace_back(model.name);
  }
  fail_unknown("[model] unknown model", name, names);
}

}  // namespace convssm::models
