// folder: recordings of your own, in files of any kind of recording_files.h (.npy, .npz, .gif, .mp4, ...), of one clip or
// many each, found in sorted order below a folder.
// Sub-folders train/, valid/ and test/ are the splits; what is missing of them is taken from the training clips, as
// convssm/data/folder_split.h tells. valid/ or test/ without train/ is an error.
// convssm/data/clip_layout.h tells how dimensions are told apart; summary() says what was found and why.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::data {

struct FolderOptions {
  std::string path;             // a folder or a file
  double test_fraction = 0.1;   // of the clips, where there is no test/
  double valid_fraction = 0.1;  // and no valid/
  std::string key;              // of the array in .npz files; "": `data`, `video`, or the only array of clips
  std::string actions_key;      // of the actions in .npz files, which all must have; "": `actions`, if it is there
  std::string layout;           // "": guessed; THW TCHW THWC NTHW NTCHW NTHWC
  // The values that become -1 and 1: one number, or one for each channel. Not given: 0 and 255 for u8 and whole numbers
  // within; 0 and 1, or -1 and 1, for others that lie within. Animations and pictures are always 0 to 255.
  std::vector<double> low, high;
  std::vector<std::string> channels;  // their names, if they have any
  bool clamp = false;                 // bring values outside to the nearer end instead of refusing them
  // `crop`: random | start, which window of longer clips training takes; the other splits take the start
  bool random_crop = true;
  int64_t min_frames = 0;  // clips with fewer are left out

  static FolderOptions from_json(const nlohmann::json& json);
};

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::data
