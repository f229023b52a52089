// Writes clips of any dataset to files, as u8 [T,H,W,C]: a folder with one .npz file per clip, as other programs for
// these experiments expect it, or one file of all clips.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "convssm/data/dataset.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct WriteOptions {
  std::string out;  // a folder; or a file that ends in .npy or .npz
  Split split = Split::train;
  uint64_t clips = 0;
  int64_t frames = 0;
  bool compress = false;            // .npz files
  bool force = false;               // replace what is there
  bool resume = false;              // of a folder: clips that are there stay, the others are added
  int workers = 1;                  // threads that make the clips of a folder
  std::function<bool()> stop = {};  // true: end after the clips that are in work
  std::string recipe = {};  // what the clips are made of, kept beside them: a run that goes on must have the same
};

// OUT/train/00/clip-000000.npz, a thousand to a folder, or OUT itself. The key is `data`; with actions it is `video`,
// and `actions`, `revisit` and the dataset's extras stand beside it. `progress` hears the number of clips done. Returns
// how many clips are there in the end. Error(io) if something is there already or the disk is too full; every file appears
// whole or not at all.
uint64_t write_clips(const Dataset& dataset, const WriteOptions& options,
                     const std::function<void(uint64_t)>& progress);

// The files of a folder, by whatever `write(index, path)` makes of a clip, in options.workers threads. The same rules.
uint64_t write_clip_files(const WriteOptions& options,
                          const std::function<void(uint64_t index, const std::string& path)>& write,
                          const std::function<void(uint64_t)>& progress);

// The section `data`, seed included, of what the clips of a folder were made or encoded from, by the recipe beside them;
// nothing if there is none.
std::optional<nlohmann::json> made_from(const std::string& folder);

// Where clip `index` goes, relative to OUT.
std::string clip_name(Split split, uint64_t index);

// [T,C,H,W] in [-1,1] to u8 [T,H,W,C], rounded.
io::Array to_bytes(const at::Tensor& video);

}  // namespace convssm::data
