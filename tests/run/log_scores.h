// The log of a run without what a clock decides: the same however often the run was interrupted.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::testing {

inline std::vector<nlohmann::json> log_scores(const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(run + "/log.jsonl");
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    for (const char* clock : {"seconds", "frames_per_second"}) lines.back().erase(clock);
  }
  return lines;
}

}  // namespace convssm::testing
