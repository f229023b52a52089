// Overrides of the `model` section for a model that is trained already, and what scores say of the model they are of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/run/model_file.h"

namespace convssm::cli {

// Those of the assignments that begin with "model.", as a group of options; which ones a model can take, it says itself.
nlohmann::json model_changes(const std::vector<std::string>& overrides);

// Makes it a model of frames of this size, if it is not, and says so. Error(usage) if its weights belong to one size.
void take_size(run::LoadedModel& loaded, int64_t height, int64_t width);

// "48 x 48, trained on 32 x 32"; "" if the frames are of the size of training.
std::string other_size_text(const run::LoadedModel& loaded);

// {"step", "checksum", "weights": "trained" or "average", "changes": ["model.core.window: 4 -> 2", "frames: 32 x 32 -> 48 x 48"]
// if there are any}
nlohmann::json scored_checkpoint(const run::LoadedModel& loaded);

}  // namespace convssm::cli
