// The table of the kinds of recordings, and everything that asks it. A folder of arrays often holds animations and
// pictures of them too, to look at: where one kind is wanted it is the first of the table that is there. Pictures are then the
// frames of clips, a folder each, unless a file holds several: then it is a clip. Files of actions beside clips are no recordings (companion.h).
#include "convssm/data/recording_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/natural_order.h"
#include "convssm/data/animation_recording.h"
#include "convssm/data/array_choice.h"
#include "convssm/data/array_recording.h"
#include "convssm/data/companion.h"
#include "convssm/data/field_recording.h"
#include "convssm/data/field_variables.h"
#include "convssm/data/frame_folder.h"
#include "convssm/data/masked_recording.h"
#include "convssm/data/viewed_recording.h"
#include "convssm/io/animation.h"
#include "convssm/io/file_kind.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  std::vector<std::string> endings;
  bool arrays;    // a file holds arrays of any shape
  bool one_clip;  // a file is a clip
  std::unique_ptr<Recording> (*open)(const std::string&, const RecordingOptions&);
};

const std::vector<Kind>& kinds_of_recordings() {
  static const std::vector<Kind> table{
      {"field",
       {".nc", ".nc4", ".cdf", ".zarr", ".grib", ".grb", ".grib2", ".grb2", ".he5"},
       false,
       false,
       open_field_recording},
      {"array", {".npy", ".npz", ".h5", ".hdf5"}, true, false, open_array_recording},
      {"animation", {".gif", ".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm"}, false, true, open_animation},
      {"picture", {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".pgm", ".ppm", ".pnm"}, false, true, open_picture},
  };
  return table;
}

const Kind* kind_of_ending(const std::string& ending) {
  for (const Kind& kind : kinds_of_recordings()) {
    if (std::ranges::find(kind.endings, ending) != kind.endings.end()) return &kind;
  }
  return nullptr;
}

const Kind* named_kind(const std::string& path) { return kind_of_ending(file_ending(path)); }

bool is_field(const Kind* kind) { return kind && kind->open == open_field_recording; }

// A NetCDF-4 file is an HDF5 file too: its name says how it is meant.
const Kind* kind_of(const std::string& path, const std::string& ending) {
  const Kind* kind = kind_of_ending(ending);
  const Kind* named = named_kind(path);
  return kind && kind->arrays && is_field(named) ? named : kind;
}
const Kind* found_kind(const std::string& path) { return kind_of(path, io::reading_ending(path)); }

// An HDF5 file holds arrays, or fields of CF's conventions.
bool is_hdf5(const std::string& path) { return io::reading_ending(path) == ".h5"; }
bool reads_as_fields(const std::string& path, const RecordingOptions& options) {
  if (!is_hdf5(path) || !options.key.empty() || !options.layout.empty()) return false;
  return !options.fields.variables.empty() || holds_fields_of_cf(path);
}

// ": what to do", or nothing.
std::string advice_text(const io::FileKind& kind) { return kind.advice.empty() ? "" : ": " + kind.advice; }

std::unique_ptr<Recording> open_as_it_is(const std::string& path, const RecordingOptions& options) {
  const io::FileKind found = io::file_kind(path);
  if (found.name.empty() && fs::is_directory(path)) {
    return field_files(path).empty() ? open_frame_folder(path, options) : open_field_recording(path, options);
  }
  const Kind* kind = found.name.empty() ? named_kind(path) : kind_of(path, found.ending);
  if (kind && kind->arrays && reads_as_fields(path, options)) return open_field_recording(path, options);
  if (kind) return kind->open(path, options);
  fail(ErrorKind::data, "[recording] '{}' is {}, none of {}{}", path,
       found.name.empty() ? "of no kind that is known here" : found.name, recording_endings(), advice_text(found));
}

// A file that is left out may be one that cannot even be read.
io::FileKind kind_of_other(const std::string& path) {
  try {
    return io::file_kind(path);
  } catch (const Error&) {
    return {};
  }
}

// Files below a folder, hidden ones left out.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const fs::path& entry = entries->path();
    const bool hidden = entry.filename().string().starts_with(".");
    const bool store = !hidden && entries->is_directory() && !io::file_kind(entry.string()).name.empty();
    if (entries->is_directory() && (hidden || store)) entries.disable_recursion_pending();
    if (!hidden && (store || !entries->is_directory()))
      names.push_back(entry.lexically_relative(folder).generic_string());
  }
  if (error) fail(ErrorKind::io, "[folder] cannot read the folder '{}': {}", folder, error.message());
  std::ranges::sort(names);
  return names;
}

// The folder that a name lies in, "." for the one that was searched.
std::string folder_of(const std::string& name) {
  const std::string folder = fs::path(name).parent_path().generic_string();
  return folder.empty() ? "." : folder;
}

// Of the pictures in a folder, those that hold frames of a clip each: the first of a format that can hold several tells.
std::vector<std::string> stacks_among(const std::string& searched, const std::vector<std::string>& pictures) {
  std::vector<std::string> stacks;
  std::ranges::copy_if(pictures, std::back_inserter(stacks), io::may_hold_pictures);
  const auto first = std::ranges::min_element(stacks, by_numbers);
  try {
    if (first != stacks.end() && io::count_pictures(recording_path(searched, *first)) > 1) return stacks;
  } catch (const Error&) {  // said when it is read
  }
  return {};
}

// By its first bytes; a file that cannot be read is none.
bool is_grid(const std::string& path) {
  try {
    return !io::file_kind(path).name.empty() && is_field_file(path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<Recording> open_recording(const std::string& path, const RecordingOptions& options) {
  auto recording = open_as_it_is(path, options);
  if (options.actions_required && !recording->info().has_actions) {
    const RecordingInfo& info = recording->info();
    fail(ErrorKind::data, "[folder] '{}' has no array '{}' of actions (data.actions_key); it has {}", path,
         actions_key(options),
         info.like_actions.empty() ? "nothing that could be actions"
                                   : fmt::format("'{}', which could be actions", info.like_actions[0]));
  }
  if (masks(recording->info(), options)) recording = mask_recording(std::move(recording), options);
  return options.view.changes() ? view_recording(std::move(recording), options.view) : std::move(recording);
}

void check_field_options(const RecordingInfo& info) {
  if (info.kind == "field") return;
  const RecordingOptions& o = info.reading;
  const char* option = !o.fields.variables.empty() ? "variables"
                       : !o.fields.select.empty()  ? "select"
                       : !o.forcings.empty()       ? "forcings"
                       : !o.from.empty()           ? "from"
                       : !o.until.empty()          ? "until"
                                                   : nullptr;
  if (!option) return;
  fail(
      ErrorKind::usage,
      "[folder] data.{} is for grid files (NetCDF, Zarr, GRIB), '{}' is a recording of the kind '{}'; leave it out, or "
      "give the grid file",
      option, info.path, info.kind);
}

bool is_picture(const std::string& path) {
  const Kind* kind = named_kind(path);
  return kind != nullptr && kind->open == open_picture;
}

bool holds_arrays(const std::string& path) {
  const Kind* kind = found_kind(path);
  return kind && kind->arrays && !reads_as_fields(path, {});
}

int64_t count_clips(const std::string& path, const RecordingOptions& options) {
  const Kind* kind = found_kind(path);
  return kind && kind->one_clip ? 1 : open_recording(path, options)->info().clips;
}

bool is_field_file(const std::string& path) {
  const io::FileKind found = io::file_kind(path);
  const Kind* kind = found.name.empty() ? named_kind(path) : kind_of(path, found.ending);
  return is_field(kind) || (kind && kind->arrays && reads_as_fields(path, {}));
}

std::vector<std::string> field_files(const std::string& folder) {
  std::vector<std::string> paths, arrays, unnamed;
  bool others = false;
  for (const std::string& name : files_below(folder)) {
    const Kind* kind = named_kind(name);
    const std::string path = (fs::path(folder) / name).string();
    if (!kind) unnamed.push_back(path);
    if (is_field(kind)) paths.push_back(path);
    if (kind && kind->arrays) arrays.push_back(path);
    others = others || (kind && !is_field(kind) && !kind->arrays);
  }
  // Names such as gfs.t00z.pgrb2.0p25.f000 say nothing, where no other does.
  if (paths.empty() && arrays.empty() && !others) std::ranges::copy_if(unnamed, std::back_inserter(paths), is_grid);
  const bool hdf5 = paths.empty() && !arrays.empty() && std::ranges::all_of(arrays, is_hdf5);
  return hdf5 && reads_as_fields(arrays[0], {}) ? arrays : paths;
}

bool holds_fields(const std::string& path) {
  return is_field_file(path) || (fs::is_directory(path) && !field_files(path).empty());
}

std::string recording_endings() {
  std::vector<std::string> all;
  for (const Kind& kind : kinds_of_recordings()) {
    all.push_back(fmt::format("{}s ({})", kind.name, fmt::join(kind.endings, ", ")));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

FoundFiles find_recordings(const std::string& path, Kinds kinds) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const fs::path here = fs::current_path(error);
    fail(ErrorKind::io, "[folder] there is no file or folder '{}'{}; set data.path", path,
         fs::path(path).is_absolute() ? "" : fmt::format(" in the current folder, {}", here.string()));
  }
  if (!fs::is_directory(status)) return {{fs::path(path).filename().string()}};
  if (!io::file_kind(path).name.empty()) return {{"."}};  // a store
  const std::vector<std::string> all = files_below(path);
  std::set<std::string> animations, picture_folders;
  std::map<std::string, std::vector<std::string>> pictures;  // of each folder
  for (const std::string& name : all) {
    const Kind* kind = named_kind(name);
    if (kind && kind->open == open_animation) animations.insert(name);
    if (kind && kind->open == open_picture) pictures[folder_of(name)].push_back(name);
  }
  std::vector<std::string> stacks, beside;  // and other pictures in their folders
  for (const auto& [folder, names] : pictures) {
    const std::vector<std::string> some = stacks_among(path, names);
    if (some.empty()) picture_folders.insert(folder);
    stacks.insert(stacks.end(), some.begin(), some.end());
    if (!some.empty()) std::ranges::set_difference(names, some, std::back_inserter(beside));
  }
  animations.insert(stacks.begin(), stacks.end());
  const std::set<std::string> companions = companions_of(path, all, animations, picture_folders);
  const Kind* wanted = nullptr;  // pointers into the table: the smaller one comes first
  for (const std::string& name : all) {
    const Kind* kind = companions.contains(name) ? nullptr : named_kind(name);
    if (kind && (!wanted || kind < wanted)) wanted = kind;
  }
  FoundFiles found;
  for (const std::string& name : all) {
    const Kind* kind = named_kind(name);
    if (companions.contains(name)) continue;
    if (kind && (kinds == Kinds::all || kind == wanted)) {
      found.names.push_back(name);
    } else if (found.others++ == 0) {
      found.other = name;
    }
  }
  const bool frames = kinds == Kinds::one && wanted && wanted->open == open_picture;
  if (frames) {
    found.names.assign(picture_folders.begin(), picture_folders.end());
    found.names.insert(found.names.end(), stacks.begin(), stacks.end());
    std::ranges::sort(found.names);
    if (found.others == 0 && !beside.empty()) found.other = beside[0];
    found.others += beside.size();
  }
  const auto holds_grids = [&] { return (!wanted || wanted->arrays) && !field_files(path).empty(); };
  if (kinds == Kinds::one && (is_field(wanted) || holds_grids())) {
    found.names = {"."};
    if (!wanted) found.others = 0;
  }
  return found;
}

void fail_no_recordings(const std::string& folder, const FoundFiles& found) {
  const bool store = !io::file_kind(folder).name.empty();  // the folder itself is a format
  const std::string path = store ? folder : recording_path(folder, found.other);
  const io::FileKind kind = store || found.others > 0 ? kind_of_other(path) : io::FileKind{};
  const std::string others = found.others > 0 ? fmt::format(", but {} others", found.others) : "";
  const std::string what = kind.name.empty() ? "" : fmt::format("; '{}' is {}{}", path, kind.name, advice_text(kind));
  fail(ErrorKind::data, "[folder] '{}' holds no recordings: {}{}{}", folder, recording_endings(), others, what);
}

std::string left_out_text(const std::string& folder, const FoundFiles& found) {
  if (found.others == 0) return "";
  const std::string kind = kind_of_other(recording_path(folder, found.other)).name;
  return fmt::format("{} file{} of other kinds {} left out, such as '{}'{}", found.others, found.others == 1 ? "" : "s",
                     found.others == 1 ? "is" : "are", found.other, kind.empty() ? "" : fmt::format(" ({})", kind));
}

std::string recording_path(const std::string& searched, const std::string& name) {
  return fs::is_directory(searched) && name != "." ? (fs::path(searched) / name).string() : searched;
}

}  // namespace convssm::data
