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
  std::shared_ptr<ArrayCache> cache;  // that the files share
  SplitClips clips;
  PixelRanges ranges;
  ActionFormat actions;
  CodeFormat codes;                // if there are any, ranges are not used
  bool looked_through = false;     // all pixels were read and are within the ranges
  std::vector<std::string> notes;  // what was found and how it is read
};

// Error(data) if there is valid/ or test/ below a folder without train/: pooled and split by lots, clips of test/ would be
// trained on.
void check_splits(const std::string& path);

// The folder of each split that has one, or the path itself for all of them.
struct SplitFolder {
  Split split;
  std::string folder;
};
std::vector<SplitFolder> split_folders(const std::string& path);

// How the files are read; codes are looked for before a video where they are wanted.
RecordingOptions reading_of(const FolderOptions& options, const std::vector<SplitFolder>& folders);

// Reads the heads of all files and their actions, and their pixels only if the range of values must be found. Error(data) if there are no
// clips or they do not fit together.
FolderIndex index_folder(const FolderOptions& options);

}  // namespace convssm::data
