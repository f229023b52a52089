// Recordings in .npy and .npz files: arrays of one clip or several in any of the layouts of clip_layout.h, and beside
// them an array `actions`: whole numbers [T] or [N,T], where negative ones are masked, or floats [T,A] or [N,T,A], where
// NaN is.
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

std::unique_ptr<Recording> open_array_recording(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
