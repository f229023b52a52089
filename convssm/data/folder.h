// folder: recordings of your own, in files of any kind of recording_files.h (arrays, videos, pictures), of one clip or
// many each, or in folders of frames, found in sorted order below a folder. Arrays of codes of a tokenizer are clips too.
// Sub-folders train/, valid/ and test/ are the splits; what is missing of them is taken from the training clips, as
// convssm/data/folder_split.h tells. valid/ or test/ without train/ is an error.
// convssm/data/clip_layout.h tells how dimensions are told apart; summary() says what was found and why.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/recording.h"

namespace convssm::data {

struct FolderOptions {
  std::string path;             // a folder or a file
  double test_fraction = 0.1;   // of the clips, where there is no test/
  double valid_fraction = 0.1;  // and no valid/
  // How files are read: key, layout, actions, stride, size, ... A key of actions that is named here must be in all files.
  RecordingOptions reading;
  int64_t action_count = 0;  // whole numbers must be below it; 0: as many as are found
  // `masked_actions`: allow | fail, whether files may have negative or NaN ones. Not given: negative ones, which are written
  // on purpose, and not NaN, which comes by mistake.
  std::optional<bool> masked_actions = {};
  int64_t codebook_size = 0;  // of codes; 0: as the files say, or as many as are found
  // The values that become -1 and 1: one number, or one for each channel. Not given: 0 and 255 for u8 and whole numbers
  // within; 0 and 1, or -1 and 1, for others that lie within. Animations and pictures are always 0 to 255.
  // `mean`, `std` instead, of the logarithm where there is one: four deviations around the mean, and values beyond are no mistake.
  std::vector<double> low, high, mean, std;
  std::vector<double> log_offset;       // one, or one for each channel; above 0: of log(x + log_offset), for rain
  std::vector<std::string> channels;    // their names, if they have any; of grid files those of the variables
  std::vector<std::string> diagnostic;  // names of channels that are forecast and never seen
  bool clamp = false;                   // bring values outside to the nearer end instead of refusing them
  // `crop`: random | start, which window of longer clips training takes: any, of all their frames equally often, or the first; the
  // other splits take the start
  bool random_crop = true;
  // `split`: time | clips, how splits are cut: the last part of the time, or whole clips by lots. Not given: time for recordings
  // whose clips are pieces of one, and for one that is alone.
  std::optional<bool> split_time = {};
  int64_t split_gap = 0;  // frames between the parts, which no split has
  bool intervals =
      false;  // `dt`: ignore | use, whether clips say how far apart their frames are, where that is not even
  int64_t min_frames = 0;  // clips with fewer are left out
  // `on_error`: fail | skip, whether files that cannot be read are left out, and windows that cannot be trained on, with warnings.
  bool skip_errors = false;

  static FolderOptions from_json(const nlohmann::json& json);
};

// How the section `data` of a config reads files, so that others are read alike; the defaults if it is of another dataset.
RecordingOptions reading_of_section(const nlohmann::json& section);

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::data
