// What a .npy or .npz file of clips holds, found without reading its pixels, and which files there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/data/clip_layout.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct ClipFile {
  std::string path;
  std::string name;  // relative to the folder that was searched
  std::string key;   // of the array in an .npz file, "" in a .npy file
  io::ArrayInfo info;
  ClipLayout layout;
  bool has_actions = false;  // an array `actions`, int [T] or [N,T]
  int64_t clips = 1, frames = 0, channels = 1, height = 0, width = 0;

  uint64_t frame_elements() const { return static_cast<uint64_t>(channels * height * width); }
};

// `key` "" looks for `data`, then `video`, then the only array of clips. Error(data) or FormatError for a file that
// does not hold clips of real numbers, or actions that do not fit them where `actions` matter.
ClipFile describe_clip_file(const std::string& path, const std::string& name, const std::string& key,
                            const std::string& layout, bool actions = true);

// An animation or picture u8 [T,H,W,C] that was read already, as a file of one clip.
ClipFile describe_animation(const std::string& path, const io::Array& frames);

// "64x64 with 1 channel"
std::string frame_text(const ClipFile& file);

// Throws Error(data) unless both have frames of one size, and actions both or neither.
void check_fit(const ClipFile& first, const ClipFile& file);

struct FoundFiles {
  std::vector<std::string> names;  // of files with one of the endings, relative to the folder, sorted
  uint64_t others = 0;             // files of other kinds
};

// All files below a folder, or the file itself. Error(io) if there is no such path; hidden files are left out.
FoundFiles find_clip_files(const std::string& path, const std::vector<std::string>& endings = {".npy", ".npz"});

}  // namespace convssm::data
