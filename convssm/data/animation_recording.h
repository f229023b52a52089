// Recordings that people look at: videos and .gif files of one clip, of bytes and 1 or 3 channels; and pictures, clips of one
// frame or, in some formats, several, whose numbers may be more than bytes. Actions stand in a file beside (companion.h).
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

std::unique_ptr<Recording> open_animation(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_picture(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
