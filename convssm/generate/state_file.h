// A state in a file: a rollout goes on tomorrow, or several futures branch from it.
#pragma once

#include <string>
#include <vector>

#include "convssm/data/field_writer.h"
#include "convssm/models/forecaster.h"

namespace convssm::generate {

// Whose state it is: a state means nothing to another model.
struct StateOwner {
  std::string checksum;     // of the model's file
  std::string weights;      // of those in it: "trained" or "average"
  std::string frames = {};  // the size that it runs at, "48x64"; "": nobody asks
};

// A state, and of fields for each of its futures the place of what it saw: the grid, the time of the last frame alone (none if
// nobody knows it), and which pixels were ever measured.
struct SavedState {
  models::State state;
  std::vector<data::FieldPlace> places = {};
};

void save_state(const std::string& path, const SavedState& saved, const StateOwner& owner);

// Error(data) if the file is not a state, or one of another model. A file that does not have its checksum is
// refused. Files of version 0.1 do not say which weights and frames, and have no checksum and no places.
SavedState load_state(const std::string& path, const StateOwner& owner);

}  // namespace convssm::generate
