// folder: recordings of your own, .npy and .npz files of one clip or many, found in sorted order below a folder.
// With sub-folders train/ and test/ these are the splits. Otherwise a hash of each clip's name decides, so that a new
// file does not move the others; of a single recording the last part of the time is kept for testing.
// convssm/data/clip_layout.h tells how dimensions are told apart; summary() says what was found and why.
#pragma once

#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convssm/data/dataset.h"

namespace convssm::data {

struct FolderOptions {
  std::string path;            // a folder or a file
  double test_fraction = 0.1;  // of the clips, where there are no train/ and test/
  std::string key;             // of the array in .npz files; "": `data`, `video`, or the only array of clips
  std::string layout;          // "": guessed; THW TCHW THWC NTHW NTCHW NTHWC
  // The values that become -1 and 1. Not given: 0 and 255 for u8 and whole numbers within; 0 and 1, or -1 and 1, for
  // others that lie within.
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  bool clamp = false;       // bring values outside to the nearer end instead of refusing them
  bool random_crop = true;  // `crop`: random | start, which part of longer clips training takes; tests take the start

  static FolderOptions from_json(const nlohmann::json& json);
};

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::data
