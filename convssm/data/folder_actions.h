// The actions of all files of a folder: that a training can use them, how many there are, and what people should know.
#pragma once

#include <string>
#include <vector>

#include "convssm/data/folder.h"
#include "convssm/data/recording.h"

namespace convssm::data {

struct ActionsSeen {
  int64_t actions = 0, masked = 0, count = 0;  // `count`: one more than the largest whole number
};

// Reads all actions of a file: what a training would refuse on the way is an error now, Error(data) with file, clip and frame.
void look_at_actions(Recording& file, const FolderOptions& options, ActionsSeen& seen);

// Of files of which all or none have actions. Adds to `notes` what was found, first in one line and then what is special.
ActionFormat describe_actions(const std::vector<RecordingInfo>& files, const FolderOptions& options,
                              const ActionsSeen& seen, std::vector<std::string>& notes);

}  // namespace convssm::data
