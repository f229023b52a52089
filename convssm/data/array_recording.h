// Recordings in .npy, .npz and HDF5 files: arrays of one clip or several in any layout of clip_layout.h, and beside
// them an array of actions (actions.h), by default `actions`.
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

std::unique_ptr<Recording> open_array_recording(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
