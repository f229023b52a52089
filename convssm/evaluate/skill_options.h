// What is asked of the scores of fields in their units, and the fields that they are of.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::evaluate {

enum class Skill { automatic, on, off };
const char* name(Skill skill);
Skill parse_skill(const std::string& text);  // auto, on, off

struct SkillOptions {
  Skill skill = Skill::automatic;                              // automatic: where frames are not pictures of 8 bits
  std::map<std::string, std::vector<double>> thresholds = {};  // of events, by the name of the channel, in its units
  std::vector<int64_t> fss_windows = {3, 9};                   // pixels

  bool wanted(const data::Dataset& dataset) const;  // never of codes
  nlohmann::json to_json() const;
};

// {"rain": [0.1, 1], "t2m": 273.15}; Error(usage) for what is no number.
std::map<std::string, std::vector<double>> read_thresholds(const nlohmann::json& json);

struct Variable {
  std::string name, units;         // "channel 2" of one without a name
  std::vector<double> thresholds;  // ascending
  std::vector<double> lowered;     // the same, less what the rounding of frames to float32 may take of a value
};

struct Fields {
  data::FrameFormat format;
  std::vector<Variable> variables;
  std::vector<int64_t> fss_windows;
  at::Tensor rows = {};  // weights [H] by latitude; undefined: all rows alike
};

// Error(usage) for thresholds of a channel that the data does not have, and beyond the range of values that were clipped.
Fields fields_of(const data::Dataset& dataset, const SkillOptions& options);

}  // namespace convssm::evaluate
