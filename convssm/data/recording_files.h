// Which files are recordings, told by the endings of their names, and which of them a folder holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

// "array", "animation", "picture"; "" if the ending of the name is none of theirs.
std::string recording_kind(const std::string& path);

// Whether files of this name hold arrays, of which io/array_file.h reads any.
bool holds_arrays(const std::string& path);

// Clips of a recording, found without unpacking animations.
int64_t count_clips(const std::string& path, const RecordingOptions& options);

// ".npy, .npz, .gif, .mp4, .png"
std::string recording_endings();

struct FoundFiles {
  std::vector<std::string> names;  // relative to the folder, sorted
  uint64_t others = 0;             // files that are left out
};

enum class Kinds {
  one,  // of a folder with several kinds of recordings the first of: arrays, animations, pictures
  all
};

// All recordings below a folder, or the file itself. Error(io) if there is no such path; hidden files are left out.
FoundFiles find_recordings(const std::string& path, Kinds kinds);

// The path of a file that was found at `searched`.
std::string recording_path(const std::string& searched, const std::string& name);

}  // namespace convssm::data
