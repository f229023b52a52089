// Which stored values become -1 and 1, where the user did not say.
#pragma once

#include <string>
#include <vector>

#include "convssm/data/clip_file.h"
#include "convssm/data/pixels.h"

namespace convssm::data {

struct FoundRange {
  double low = 0, high = 255;
  std::string reason;
};

// `low` and `high` as given, NaN where not. Reads all pixels unless the element type decides. Error(data) that tells to
// set low and high if the values are in no usual range.
FoundRange find_range(const std::vector<ClipFile>& files, double low, double high);

// The range that values of this type and these extremes are taken to be in. Error(data) as find_range.
FoundRange usual_range(const std::vector<ClipFile>& files, const Extremes& found);

// Of all pixels of a file, read in pieces.
Extremes file_extremes(const ClipFile& file);

}  // namespace convssm::data
