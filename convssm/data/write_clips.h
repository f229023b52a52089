// Writes clips of any dataset to files, as u8 [T,H,W,C]: a folder with one .npz file per clip, as other programs for
// these experiments expect it, or one file of all clips.
#pragma once

#include <functional>
#include <string>

#include "convssm/data/dataset.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct WriteOptions {
  std::string out;  // a folder; or a file that ends in .npy or .npz
  Split split = Split::train;
  uint64_t clips = 0;
  int64_t frames = 0;
  bool compress = false;  // .npz files
  bool force = false;     // replace what is there
};

// OUT/train/00/clip-000000.npz, a thousand to a folder, or OUT itself. The key is `data`; with actions it is `video`,
// and `actions` stand beside it. `progress` hears the number of clips done. Error(io) if something is there already or
// the disk is too full; every file appears whole or not at all.
void write_clips(const Dataset& dataset, const WriteOptions& options, const std::function<void(uint64_t)>& progress);

// Where clip `index` goes, relative to OUT.
std::string clip_name(Split split, uint64_t index);

// [T,C,H,W] in [-1,1] to u8 [T,H,W,C], rounded.
io::Array to_bytes(const at::Tensor& video);

}  // namespace convssm::data
