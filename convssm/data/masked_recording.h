// Files that say nothing of pixels that were not measured: NaN, or a number that stands for them, as their owner says.
#pragma once

#include <memory>

#include "convssm/data/recording.h"

namespace convssm::data {

// Whether options.missing or options.missing_value ask for it.
bool masks(const RecordingInfo& info, const RecordingOptions& options);

// The same recording, whose pixels may be missing: those that are NaN, or options.missing_value. Whole numbers become floats, those of
// more than 16 bits f64. Error(usage) for whole numbers without such a value, videos and codes.
std::unique_ptr<Recording> mask_recording(std::unique_ptr<Recording> recording, const RecordingOptions& options);

}  // namespace convssm::data
