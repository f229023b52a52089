// Recordings written as files of another kind, a part at a time. The ending says which:
//   .npy, .npz, .h5   numbers as they are stored: [T,H,W,C] of pictures, [T,C,H,W] of fields; .npz and .h5 with actions and times beside
//   .nc, .zarr        fields with names, units, coordinates and times, in the type that they are stored in
//   .tif              a page for each frame, numbers as they are stored
//   .gif, .mp4, .mkv, .avi, .webm, .png (a strip), and a folder of .png frames (a name that ends with /)
//                     to look at: bytes as they are, other values from the least (black) to the largest
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"

namespace convssm::data {

struct ConvertOptions {
  int64_t first = 0, frames = 0;  // of each clip; 0 frames: the rest
  double fps = 10;
  int zarr_version = 2;                // of .zarr: 2, or 3, which not every program reads
  std::optional<Extremes> shown = {};  // black and white of pictures; not given: the extremes of what is converted
};

// One clip of a recording. `progress` hears the frames done; a false ends it, with what is there. Error(usage) for an ending that is
// none of these; nothing is at the path before all is written.
void convert_clip(Recording& recording, int64_t clip, const std::string& path, const ConvertOptions& options,
                  const std::function<bool(int64_t)>& progress = {});

// The extremes of what would be converted, if pictures at the path need them: not those of bytes.
std::optional<Extremes> shown_extremes(const RecordingInfo& info, int64_t clip, const std::string& path,
                                       const ConvertOptions& options);

// ".npy, .npz, .nc, ..."
std::string convertible_endings();

}  // namespace convssm::data
