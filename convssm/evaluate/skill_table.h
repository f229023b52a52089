// Scores in units as tables for a terminal: one for each variable and horizon, a row for each score, a column for each
// forecaster.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convssm::evaluate {

// `skill` as FieldContest::to_json gives it.
std::string skill_text(const nlohmann::json& skill);

}  // namespace convssm::evaluate
