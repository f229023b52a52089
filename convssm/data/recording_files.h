// Which files are recordings, and which of them a folder holds. Of a folder the files are chosen by the endings of their
// names, unread; what a single file is tell its first bytes (io/file_kind.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

// Whether the file holds arrays, of which io/array_file.h reads any.
bool holds_arrays(const std::string& path);

// Whether a file of this name is a single frame.
bool is_picture(const std::string& path);

// Whether a path is a grid file (a Zarr store is a folder), all those below a folder, sorted, and whether it is either.
bool is_field_file(const std::string& path);
std::vector<std::string> field_files(const std::string& folder);
bool holds_fields(const std::string& path);

// Error(usage) if a recording that is no grid file was opened with options of those: variables, select, forcings.
void check_field_options(const RecordingInfo& info);

// Clips of a recording, found without unpacking animations.
int64_t count_clips(const std::string& path, const RecordingOptions& options);

// "arrays (.npy, .npz, .h5, .hdf5), animations (.gif, .mp4, ...), pictures (.png, ...)"
std::string recording_endings();

struct FoundFiles {
  // Relative to the folder, sorted; folders of frames too, and "." for the folder itself, also if it is one of grid files.
  std::vector<std::string> names;
  uint64_t others = 0;     // files that are left out
  std::string other = {};  // the first of them
};

enum class Kinds {
  one,  // of a folder with several kinds of recordings the first of: grids, arrays, animations, folders of frames
  all   // every file, a picture as a clip of one frame
};

// All recordings below a folder, or the file itself. Files of actions that belong to them are not listed. Error(io) if there is no such path; hidden files are left out.
FoundFiles find_recordings(const std::string& path, Kinds kinds);

// Throws Error(data): what the folder holds instead of recordings, and what to do.
[[noreturn]] void fail_no_recordings(const std::string& folder, const FoundFiles& found);

// "2 files of other kinds are left out, such as 'a.h5' (an HDF5 file)"; "" if there are none.
std::string left_out_text(const std::string& folder, const FoundFiles& found);

// The path of a file that was found at `searched`.
std::string recording_path(const std::string& searched, const std::string& name);

}  // namespace convssm::data
