// Overrides of the `model` section for a model that is trained already, and what scores say of the model they are of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/run/model_file.h"

namespace convssm::cli {

// Those of the assignments that begin with "model.", as a group of options; which ones a model can take, it says itself.
nlohmann::json model_changes(const std::vector<std::string>& overrides);

// {"step", "checksum", "weights": "trained" or "average", "changes": ["model.core.window: 4 -> 2"] if there are any}
nlohmann::json scored_checkpoint(const run::LoadedModel& loaded);

}  // namespace convssm::cli
