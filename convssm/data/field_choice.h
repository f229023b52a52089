// Which variables of grid files are channels (data/field_file.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace convssm::data {

// "u@850": of a variable with levels the one of that value. None named: all fields of the file that have one grid, if they are few.
struct FieldChoice {
  std::vector<std::string> variables = {};
  std::map<std::string, double> select = {};  // along dimensions that are neither time nor level nor rows nor columns
  std::map<std::string, std::pair<double, double>> forcing_ranges = {};  // of forcings.h: what becomes -1 and 1
};

}  // namespace convssm::data
