// Recordings that people look at: .gif and .mp4 files of one clip, and pictures, clips of one frame. Their values are bytes,
// 1 or 3 channels. Actions of an animation stand in a file beside it (companion.h).
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

std::unique_ptr<Recording> open_animation(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_picture(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
