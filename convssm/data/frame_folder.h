// A folder of pictures (.png, .jpg, .tif, ...), all of one format, that are the frames of one clip, in the order of the numbers in their names. Actions
// stand in a file in it or beside it (companion.h).
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

// Pictures in sub-folders are not part of it. Error(data) if there are none.
std::unique_ptr<Recording> open_frame_folder(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
