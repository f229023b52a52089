// Overrides of the `model` section for a model that is trained already.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::cli {

// Those of the assignments that begin with "model.", as a group of options; which ones a model can take, it says itself.
nlohmann::json model_changes(const std::vector<std::string>& overrides);

}  // namespace convssm::cli
