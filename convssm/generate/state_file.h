// A state in a file: a rollout goes on tomorrow, or several futures branch from it.
#pragma once

#include <string>

#include "convssm/models/forecaster.h"

namespace convssm::generate {

// `checksum` is that of the model's file: a state means nothing to another model.
void save_state(const std::string& path, const models::State& state, const std::string& checksum);

// Error(data) if the file is not a state, or one of another model.
models::State load_state(const std::string& path, const std::string& checksum);

}  // namespace convssm::generate
