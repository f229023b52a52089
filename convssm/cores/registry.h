// All cores by name. A new core adds one line to the table in registry.cpp.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/cores/core.h"

namespace convssm::cores {

struct CoreInfo {
  const char* name;
  const char* summary;
  bool on_tokens;  // takes tokens instead of frames: frame_core.h puts an adaptor around it
  std::shared_ptr<Core> (*make)(const nlohmann::json& options);
};

const std::vector<CoreInfo>& all_cores();

// make_core("convs5", {{"features", 64}, {"state_size", 64}})
std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options);

}  // namespace convssm::cores
