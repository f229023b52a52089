// Which clips of a folder are for training, validation and testing, so that no clip and no moment is in two splits.
// A clip draws a lot in [0,1) by a hash of its name: [0, test_fraction) is for testing, the next valid_fraction for
// validation, the rest for training, so that a new file does not move the others. Every split gets a clip where there
// are enough; where a single clip is left to be shared, or clips are pieces of one
// recording, the end of their time is kept apart.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::data {

// One clip: `frames` frames from `first` on of row `row` of a file.
struct ClipRef {
  size_t file = 0;
  int64_t row = 0, first = 0, frames = 0;
};

struct SplitClips {
  std::vector<ClipRef> train, valid, test;

  const std::vector<ClipRef>& of(Split split) const {
    return split == Split::train ? train : split == Split::valid ? valid : test;
  }
};

// Takes the last `test_fraction` of the frames of clips.train, which follow each other in time, for testing, and what is before them
// for validation. `gap` frames between the parts, and pieces of a single frame, are in none. A fraction of 0 leaves a split as it is. Tells what was done in
// words.
std::vector<std::string> split_time(SplitClips& clips, double test_fraction, double valid_fraction, int64_t gap);

// Takes `test_fraction` and then `valid_fraction` of the clips out of clips.train; a fraction of 0 leaves a split as it
// is. Tells what was done in words.
std::vector<std::string> split_clips(SplitClips& clips, double test_fraction, double valid_fraction,
                                     const std::function<double(const ClipRef&)>& lot);

}  // namespace convssm::data
