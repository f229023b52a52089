// A recording as a FrameView has it: whatever its kind, its frames and actions are read and then changed.
#pragma once

#include <memory>

#include "convssm/data/recording.h"

namespace convssm::data {

// Error(data) that names the file if the view does not fit it.
std::unique_ptr<Recording> view_recording(std::unique_ptr<Recording> recording, const FrameView& view);

}  // namespace convssm::data
