// All cores by name. A new core adds one line to the table in registry.cpp, or register_core in a program of its own.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/cores/core.h"

namespace convssm::cores {

struct CoreInfo {
  std::string name;
  std::string summary;
  bool on_tokens;    // takes tokens [L,B,C] instead of frames: frame_core.h puts an adaptor around it
  bool many_tokens;  // and any number of them per frame, [L,B,C,h,w], told by its option `tokens`
  std::function<std::shared_ptr<Core>(const nlohmann::json& options)> make;
  std::function<void(const nlohmann::json& options)> check = {};  // throws for options that `make` does not know
};

const std::vector<CoreInfo>& all_cores();

// Adds a core of the caller's own; Error(usage) if the name is taken or empty, or nothing makes it. References from
// find_core end with it.
void register_core(CoreInfo info);

// The one of this name; an unknown name is an error that names the nearest.
const CoreInfo& find_core(const std::string& name);

// make_core("convs5", {{"features", 64}, {"state_size", 64}})
std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options);

}  // namespace convssm::cores
