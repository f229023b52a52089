// The scores of one setting of metrics.json as a table of the report. Read leniently, value by value: a file of another version
// or one that is damaged loses cells and not the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convssm::report {

// `scores` has "horizons", `protocol` says of what; "" if there are none.
std::string score_table(const nlohmann::json& scores, const nlohmann::json& protocol);

// Whether the scores are of what a tokenizer gives back, and not of forecasts.
bool reconstructs(const nlohmann::json& protocol);

// A list at a key, else an empty one.
nlohmann::json array_at(const nlohmann::json& object, const char* key);

}  // namespace convssm::report
