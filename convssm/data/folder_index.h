// The clips that a folder holds: which files there are, which clips belong to which split, and that they fit together.
#pragma once

#include <string>
#include <vector>

#include "convssm/data/clip_file.h"
#include "convssm/data/folder.h"
#include "convssm/data/pixels.h"

namespace convssm::data {

// One clip: `frames` frames from `first` on of row `row` of a file.
struct ClipRef {
  size_t file = 0;
  int64_t row = 0, first = 0, frames = 0;
};

struct FolderIndex {
  std::vector<ClipFile> files;
  std::vector<ClipRef> train, test;
  PixelRange range;
  int64_t action_count = 0;
  std::vector<std::string> notes;  // what was found and how it is read

  const std::vector<ClipRef>& clips(Split split) const { return split == Split::train ? train : test; }
};

// Reads the heads of all files, and their pixels only if the range of values must be found. Error(data) if there are no
// clips or they do not fit together.
FolderIndex index_folder(const FolderOptions& options);

}  // namespace convssm::data
