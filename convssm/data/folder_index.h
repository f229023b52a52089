// The clips that a folder holds: which files there are, which clips belong to which split, and that they fit together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convssm/data/folder.h"
#include "convssm/data/folder_split.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"

namespace convssm::data {

struct FolderIndex {
  std::vector<std::unique_ptr<Recording>> files;
  SplitClips clips;
  PixelRanges ranges;
  ActionFormat actions;
  bool looked_through = false;     // all pixels were read and are within the ranges
  std::vector<std::string> notes;  // what was found and how it is read
};

// Error(data) if there is valid/ or test/ below a folder without train/: pooled and split by lots, clips of test/ would be
// trained on.
void check_splits(const std::string& path);

// Reads the heads of all files, and their pixels only if the range of values must be found. Error(data) if there are no
// clips or they do not fit together.
FolderIndex index_folder(const FolderOptions& options);

}  // namespace convssm::data
