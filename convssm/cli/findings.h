// Findings about a machine: what is there, and what to do about it if it is bad.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convssm::cli {

struct Finding {
  std::string group;             // "Threads"
  std::string name;              // "in use"
  std::string value;             // for people: "22.9 GiB"
  std::string advice;            // what to do; empty: nothing is wrong
  std::optional<double> number;  // for programs, in the base unit: bytes, GFLOP/s, a count
};

// Under the heading of its group each, bad ones marked and followed by their advice.
void print_findings(const std::vector<Finding>& findings, std::FILE* out);

// [{"group", "name", "value", "number", "ok", "advice"}, ...]
nlohmann::json findings_json(const std::vector<Finding>& findings);

}  // namespace convssm::cli
