// How large a model fits into the memory of this machine, for a person who has data and a first config.
#pragma once

#include <string>

namespace convssm::run {

// Of a whole config: what a training of it takes, measured on the first frames of a clip, and of models with more features, by
// arithmetic. Errors as make_dataset and make_model.
std::string memory_outlook(const std::string& config);

}  // namespace convssm::run
