// Reads the heads of the files, decides the splits and the range of values, and keeps notes of it all for people.
#include "convssm/data/folder_index.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/value_range.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t cache_bytes = uint64_t{256} << 20;

void check_actions_key(const RecordingInfo& info, const FolderOptions& o) {
  if (o.actions_key.empty() || info.has_actions) return;
  fail(ErrorKind::data, "[folder] '{}' has no array '{}', which data.actions_key names; it has {}", info.path,
       o.actions_key,
       info.like_actions.empty() ? "nothing that could be actions"
                                 : fmt::format("'{}', which could be actions", info.like_actions[0]));
}

// Error(data) if no file is left.
void note_short_files(FolderIndex& index, const std::string& folder, int64_t min_frames,
                      const std::vector<std::string>& too_short, size_t files) {
  if (too_short.empty()) return;
  const size_t shown = std::min<size_t>(5, too_short.size());
  const std::string list = fmt::format("{}{}", fmt::join(too_short.begin(), too_short.begin() + shown, ", "),
                                       shown < too_short.size() ? ", ..." : "");
  if (too_short.size() == files) {
    fail(ErrorKind::data, "[folder] no file of '{}' has min_frames = {} frames: {}", folder, min_frames, list);
  }
  index.notes.push_back(fmt::format("{} of {} files have fewer than {} frames and are left out: {}", too_short.size(),
                                    files, min_frames, list));
}

// Opens all recordings below `folder` and adds their clips to `clips`.
void add_files(FolderIndex& index, const std::string& folder, const FolderOptions& o,
               const std::shared_ptr<ArrayCache>& cache, std::vector<ClipRef>& clips) {
  const FoundFiles found = find_recordings(folder, Kinds::one);
  if (found.names.empty()) fail_no_recordings(folder, found);
  std::vector<std::string> too_short;
  for (const std::string& name : found.names) {
    auto file =
        open_recording(recording_path(folder, name),
                       {.key = o.key, .layout = o.layout, .actions_key = o.actions_key, .name = name, .cache = cache});
    check_actions_key(file->info(), o);
    if (!index.files.empty()) check_fit(index.files[0]->info(), file->info());
    if (file->info().frames < o.min_frames) {
      too_short.push_back(fmt::format("'{}' ({})", name, file->info().frames));
      continue;
    }
    for (int64_t row = 0; row < file->info().clips; ++row) {
      clips.push_back({index.files.size(), row, 0, file->info().frames});
    }
    index.files.push_back(std::move(file));
  }
  note_short_files(index, folder, o.min_frames, too_short, found.names.size());
  if (found.others > 0) index.notes.push_back(left_out_text(folder, found));
}

// In [0,1), by the name of the clip and nothing else.
double lot(const FolderIndex& index, const ClipRef& clip) {
  return Stream(0, "folder: " + index.files[clip.file]->info().name, static_cast<uint64_t>(clip.row)).uniform();
}

std::string split_folder(const std::string& path, Split split) { return (fs::path(path) / name(split)).string(); }

bool has_split(const std::string& path, Split split) { return fs::is_directory(split_folder(path, split)); }

// Sub-folders are the splits where there is train/ and one of the others; what is missing is taken from the training clips.
void find_clips(FolderIndex& index, const FolderOptions& o) {
  check_splits(o.path);
  const auto folder = [&](Split split) { return split_folder(o.path, split); };
  const auto there = [&](Split split) { return has_split(o.path, split); };
  const auto cache = std::make_shared<ArrayCache>(cache_bytes);
  double test_fraction = o.test_fraction, valid_fraction = o.valid_fraction;
  if (there(Split::train) && (there(Split::valid) || there(Split::test))) {
    add_files(index, folder(Split::train), o, cache, index.clips.train);
    if (there(Split::valid)) add_files(index, folder(Split::valid), o, cache, index.clips.valid), valid_fraction = 0;
    if (there(Split::test)) add_files(index, folder(Split::test), o, cache, index.clips.test), test_fraction = 0;
  } else {
    add_files(index, o.path, o, cache, index.clips.train);
  }
  const auto notes =
      split_clips(index.clips, test_fraction, valid_fraction, [&](const ClipRef& clip) { return lot(index, clip); });
  index.notes.insert(index.notes.end(), notes.begin(), notes.end());
}

void find_actions(FolderIndex& index) {
  const RecordingInfo& first = index.files[0]->info();
  if (!first.has_actions) {
    if (!first.like_actions.empty()) {
      index.notes.push_back(
          fmt::format("no actions: there is no array 'actions'; if '{}' holds them, set data.actions_key={}",
                      first.like_actions[0], first.like_actions[0]));
    }
    return;
  }
  index.actions.values = first.action_values;
  if (first.action_values > 0) {
    for (const auto& file : index.files) file->read_actions();  // an infinite one is an error
    index.notes.push_back(fmt::format("actions of {} number{} each, action k leads to frame k", first.action_values,
                                      first.action_values == 1 ? "" : "s"));
    return;
  }
  for (const auto& file : index.files) {
    index.actions.count = std::max(index.actions.count, file->read_actions().max().item<int64_t>() + 1);
  }
  index.notes.push_back(fmt::format("{} different actions, action k leads to frame k", index.actions.count));
}

void find_ranges(FolderIndex& index, const FolderOptions& o) {
  std::vector<RecordingInfo> infos;
  for (const auto& file : index.files) infos.push_back(file->info());
  const FoundChannels found = find_channels(infos, o.low, o.high, o.channels);
  index.ranges = {found.channels, o.clamp};
  index.looked_through = o.low.empty();  // by type or by all values
  FrameFormat format;
  format.channels = found.channels;
  index.notes.push_back(fmt::format("values {} become -1 to 1: {}", format.range_text(), found.reason));
}

void describe(FolderIndex& index) {
  const RecordingInfo& first = index.files[0]->info();
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} training, {} validation and {} test clips in {} file{}", index.clips.train.size(),
                              index.clips.valid.size(), index.clips.test.size(), index.files.size(),
                              index.files.size() == 1 ? "" : "s"));
  lines.push_back(fmt::format("frames of {}, read from {} {}{}", frame_text(first), io::dtype_name(first.dtype),
                              io::shape_text(first.shape),
                              first.key.empty() ? "" : fmt::format(" of the key '{}'", first.key)));
  std::string layout = fmt::format("layout {}: {}", first.layout.letters, first.layout.reason);
  const auto differs = [&](const auto& file) { return file->info().layout.letters != first.layout.letters; };
  const auto others = std::ranges::count_if(index.files, differs);
  if (others > 0) layout += fmt::format("; {} files have another one", others);
  lines.push_back(layout);
  index.notes.insert(index.notes.begin(), lines.begin(), lines.end());
}

}  // namespace

void check_splits(const std::string& path) {
  std::vector<std::string> found;
  for (const Split split : {Split::valid, Split::test}) {
    if (has_split(path, split)) found.push_back(fmt::format("{}/", name(split)));
  }
  if (found.empty() || has_split(path, Split::train)) return;
  fail(ErrorKind::data,
       "[folder] '{}' has {} but no train/: move the training clips to train/, or give {} another name to have all "
       "clips split by their names",
       path, fmt::join(found, " and "), found.size() == 1 ? "it" : "them");
}

FolderIndex index_folder(const FolderOptions& options) {
  FolderIndex index;
  find_clips(index, options);
  describe(index);
  find_actions(index);
  find_ranges(index, options);
  return index;
}

}  // namespace convssm::data
