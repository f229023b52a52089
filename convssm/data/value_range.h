// Which stored values become -1 and 1 in each channel: as the user said, or one usual range for all of them.
#pragma once

#include <string>
#include <vector>

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

// `low`, `high`: one number, or one for each channel, or nothing; `names`: one for each channel, or nothing. Reads all
// pixels unless they are given or the element type decides. Error(data) that tells to set low and high if the values
// are in no usual range; Error(usage) for ranges of files that are always bytes.
FoundChannels find_channels(const std::vector<RecordingInfo>& files, const std::vector<double>& low,
                            const std::vector<double>& high, const std::vector<std::string>& names);

// The range that values of this type and these extremes are taken to be in. Error(data) as find_channels.
FoundRange usual_range(io::DType dtype, const Extremes& found);

// Of each channel over all frames of a recording, read a few frames at a time.
std::vector<Extremes> recording_extremes(const RecordingInfo& info);

// Where the first of the pixels is that are not finite, and how many there are; "" if there are none.
std::string not_finite_text(const RecordingInfo& info, const Extremes& found);

}  // namespace convssm::data
