// What may be changed of a trained model: how a Transformer looks back, which no parameter depends on.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::cli {

// {"window": 100} from {"model.core.window=100", "evaluate.samples=3"}; Error(usage) for any other `model.` key.
nlohmann::json core_changes(const std::vector<std::string>& overrides);

}  // namespace convssm::cli
