// Recordings written as files of another kind, a part at a time. The ending says which:
//   .npy, .npz     numbers as they are stored: [T,H,W,C] of pictures, [T,C,H,W] of fields; .npz with the actions and times beside them
//   .nc, .zarr     fields with names, units, coordinates and times
//   .gif, .mp4, .png   to look at: bytes as they are, other values from the least (black) to the largest
#pragma once

#include <functional>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

struct ConvertOptions {
  int64_t first = 0, frames = 0;  // of each clip; 0 frames: the rest
  double fps = 10;
};

// One clip of a recording. `progress` hears the frames done; a false ends it, with what is there. Error(usage) for an ending that is
// none of these; nothing is at the path before all is written.
void convert_clip(Recording& recording, int64_t clip, const std::string& path, const ConvertOptions& options,
                  const std::function<bool(int64_t)>& progress = {});

// ".npy, .npz, .nc, ..."
std::string convertible_endings();

}  // namespace convssm::data
