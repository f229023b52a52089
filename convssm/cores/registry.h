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
  bool on_tokens;    // takes tokens [L,B,C] instead of frames: frame_core.h puts an adaptor around it
  bool many_tokens;  // and any number of them per frame, [L,B,C,h,w], told by its option `tokens`
  std::shared_ptr<Core> (*make)(const nlohmann::json& options);
};

const std::vector<CoreInfo>& all_cores();

// The one of this name; an unknown name is an error that names the nearest.
const CoreInfo& find_core(const std::string& name);

// make_core("convs5", {{"features", 64}, {"state_size", 64}})
std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options);

}  // namespace convssm::cores
