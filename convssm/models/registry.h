// All models by name. A new model adds one line to the table in registry.cpp.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/models/model.h"

namespace convssm::models {

struct FrameSize {
  int64_t channels = 1, height = 0, width = 0;
};

struct ModelInfo {
  const char* name;
  const char* summary;
  std::shared_ptr<Model> (*make)(const nlohmann::json& options, const FrameSize& frames);
};

const std::vector<ModelInfo>& all_models();

// options: the `model` section of a config, {"name": "pixel", "encoder": {...}, "core": {"name": "convs5", ...}, ...}.
std::shared_ptr<Model> make_model(const nlohmann::json& options, const FrameSize& frames);

}  // namespace convssm::models
