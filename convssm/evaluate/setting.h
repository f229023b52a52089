// A setting is one rollout of every test clip: how many frames are seen, at which horizons the rollout is scored, whether the
// model is told the actions, and by which metrics. The paper's tables of worlds with actions have two of them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::evaluate {

struct Setting {
  std::string name = {};  // in tables, "144+156 actions"; "": the only one, told by its horizons
  int64_t context = 100;
  std::vector<int64_t> horizons = {400, 800, 1200};  // generated frames; with a name there is one
  bool actions = true;                               // false: all are masked, those of the context too
  std::vector<std::string> metrics = {};             // by name; empty: those of the evaluation

  int64_t longest() const;   // horizon
  int64_t shortest() const;  // horizon
  int64_t frames() const { return context + longest(); }
  nlohmann::json to_json() const;  // of one with a name
};

// The list `evaluate.settings` of a config, [{"context", "frames", and optionally "name", "actions", "metrics"}, ...].
// Error(usage) for an empty list, an unknown key, a missing or wrong number, two settings of one name.
std::vector<Setting> read_settings(const nlohmann::json& list);

}  // namespace convssm::evaluate
