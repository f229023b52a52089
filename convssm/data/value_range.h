// Which stored values become -1 and 1 in each channel: as the user said, or one usual range for all of them.
#pragma once

#include <string>
#include <vector>

#include "convssm/data/folder.h"
#include "convssm/data/pixels.h"

namespace convssm::data {

struct FoundRange {
  double low = 0, high = 255;
  std::string reason;
};

struct FoundChannels {
  std::vector<Channel> channels;
  std::string reason;
};

// By low, high, mean, std, log_offset, channels and diagnostic of the options. Reads all pixels unless the range is given or the
// element type decides. Error(data) that tells to set low and high if the values are in no usual range; Error(usage) for
// ranges of files that are always bytes.
FoundChannels find_channels(const std::vector<RecordingInfo>& files, const FolderOptions& options);

// Four standard deviations around the mean are -1 and 1.
inline constexpr double kDeviations = 4;

// The range that values of this type and these extremes are taken to be in. Error(data) as find_channels.
FoundRange usual_range(io::DType dtype, const Extremes& found);

// Of each channel over all frames of a recording, read a few frames at a time; or over every n-th such part of them. Parts that cannot
// be read are an error; where the recording was opened with skip_errors they are left out, which a warning says, unless all are such.
std::vector<Extremes> recording_extremes(const RecordingInfo& info, uint64_t every = 1);

// Where the first of the pixels is that are not finite, and how many there are; "" if there are none.
std::string not_finite_text(const RecordingInfo& info, const Extremes& found);

}  // namespace convssm::data
