// The rows of one or several runs of the bench, as a file: {"version", "machine", "threads", "isa", "rounds", "rows"}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/bench/harness.h"

namespace convssm::bench {

struct Results {
  nlohmann::json about = nlohmann::json::object();  // all but the rows
  std::vector<Row> rows;

  const Row* find(const std::string& name) const;                   // nullptr if there is none
  std::vector<Row> starting_with(const std::string& prefix) const;  // in their order
};

// What is known of this machine and this program.
nlohmann::json describe_machine(int rounds);

void write_results(const std::string& path, const Results& results);

// Later files replace rows of the same name. Error(data) names what is wrong with a file.
Results read_results(const std::vector<std::string>& paths);

}  // namespace convssm::bench
