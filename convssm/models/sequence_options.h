// The options that all models have which go from frame to frame: coders around a core, and actions.
#pragma once

#include <nlohmann/json.hpp>

#include "convssm/base/option_reader.h"
#include "convssm/models/action_input.h"
#include "convssm/nn/frame_coder.h"

namespace convssm::models {

struct SequenceOptions {
  nn::CoderOptions encoder, decoder;
  nlohmann::json core;  // its section, name included
  ActionOptions actions;
  uint64_t seed = 0;  // of the initial values

  // The keys of the section `model` that are these; others stay for the caller. Error(usage) unless encoder and decoder fit
  // each other.
  void read_from(OptionReader& read);
};

}  // namespace convssm::models
