// Reads the heads of the files, decides the splits and the range of values, and keeps notes of it all for people.
#include "convssm/data/folder_index.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/random.h"
#include "convssm/base/slow_progress.h"
#include "convssm/data/codes.h"
#include "convssm/data/folder_actions.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/skipped_files.h"
#include "convssm/data/value_range.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t cache_bytes = uint64_t{256} << 20;

// "'a.npy' (7)", or "'b.h5' (3 of 5 clips)".
std::string short_text(const std::string& name, const RecordingInfo& info, int64_t taken) {
  if (taken == 0) return fmt::format("'{}' ({})", name, info.longest());
  return fmt::format("'{}' ({} of {} clips)", name, info.clips - taken, info.clips);
}

[[noreturn]] void fail_short(const std::string& folder, int64_t min_frames, const std::vector<std::string>& too_short) {
  fail(ErrorKind::data, "[folder] no file of '{}' has min_frames = {} frames: {}", folder, min_frames,
       some_of(too_short));
}

void note_short_files(FolderIndex& index, int64_t min_frames, const std::vector<std::string>& too_short, size_t files) {
  if (too_short.empty()) return;
  index.notes.push_back(fmt::format("clips of fewer than {} frames are left out, in {} of {} files: {}", min_frames,
                                    too_short.size(), files, some_of(too_short)));
}

// Opens a file and reads its actions; null if it cannot be read and such files are left out.
std::unique_ptr<Recording> open_file(const std::string& folder, const std::string& name, const FolderOptions& o,
                                     const RecordingOptions& reading, ActionsSeen& seen, SkippedFiles& skipped) {
  try {
    RecordingOptions own = reading;
    own.name = name;
    auto file = open_recording(recording_path(folder, name), own);
    check_field_options(file->info());
    look_at_actions(*file, o, seen);
    return file;
  } catch (const Error& error) {
    if (!o.skip_errors) throw;
    skipped.add(name, error);
    return nullptr;
  }
}

void note_skipped(FolderIndex& index, const std::string& folder, const SkippedFiles& skipped, size_t files) {
  if (skipped.none()) return;
  const std::string text = skipped.text(files);
  if (skipped.count() == files) fail(ErrorKind::data, "[folder] '{}': {}", folder, text);
  log_warning("data: {}", text);
  index.notes.push_back(text);
}

// Fields of train/ and test/ are the same quantities in the same units; of the same place, or that is said.
void check_same_fields(FolderIndex& index, const RecordingInfo& other) {
  const RecordingInfo& first = index.files[0]->info();
  const auto text = [](const Channel& channel) { return fmt::format("{} [{}]", channel.name, channel.units); };
  const auto all = [&](const RecordingInfo& info) {
    std::vector<std::string> names;
    std::ranges::transform(info.named_channels, std::back_inserter(names), text);
    return names;
  };
  if (all(first) != all(other)) {
    fail(ErrorKind::data,
         "[folder] all recordings must have the same channels: '{}' has {}, '{}' has {}; name those to take by "
         "data.variables",
         first.path, fmt::join(all(first), ", "), other.path, fmt::join(all(other), ", "));
  }
  const bool one_place =
      first.axes.rows.values == other.axes.rows.values && first.axes.columns.values == other.axes.columns.values;
  if (one_place) return;
  index.notes.push_back(fmt::format("'{}' and '{}' are of different places", first.path, other.path));
  log_warning("data: {}", index.notes.back());
}

// Opens all recordings below `folder` and adds their clips to `clips`.
void add_files(FolderIndex& index, const std::string& folder, const FolderOptions& o, const RecordingOptions& reading,
               ActionsSeen& seen, std::vector<ClipRef>& clips) {
  const FoundFiles found = find_recordings(folder, Kinds::one);
  if (found.names.empty()) fail_no_recordings(folder, found);
  std::vector<std::string> too_short;
  SkippedFiles skipped;
  SlowProgress progress("reading the heads of files", found.names.size());
  for (const std::string& name : found.names) {
    progress.next();
    auto file = open_file(folder, name, o, reading, seen, skipped);
    if (!file) continue;
    if (!index.files.empty()) {
      check_fit(index.files[0]->info(), file->info());
      check_same_fields(index, file->info());
    }
    const RecordingInfo& info = file->info();
    const size_t before = clips.size();
    for (int64_t row = 0; row < info.clips; ++row) {
      if (info.length(row) >= o.min_frames) clips.push_back({index.files.size(), row, 0, info.length(row)});
    }
    const auto taken = static_cast<int64_t>(clips.size() - before);
    if (taken < info.clips) too_short.push_back(short_text(name, info, taken));
    if (taken > 0) index.files.push_back(std::move(file));
  }
  note_skipped(index, folder, skipped, found.names.size());
  if (clips.empty() && !too_short.empty()) fail_short(folder, o.min_frames, too_short);
  note_short_files(index, o.min_frames, too_short, found.names.size());
  if (found.others > 0) index.notes.push_back(left_out_text(folder, found));
}

// In [0,1), by the name of the clip and nothing else.
double lot(const FolderIndex& index, const ClipRef& clip) {
  return Stream(0, "folder: " + index.files[clip.file]->info().name, static_cast<uint64_t>(clip.row)).uniform();
}

std::string split_folder(const std::string& path, Split split) { return (fs::path(path) / name(split)).string(); }

bool has_split(const std::string& path, Split split) { return fs::is_directory(split_folder(path, split)); }

// Whether the training clips are parts of one recording, whose order in time is known.
bool are_pieces_of_one(const FolderIndex& index) {
  const std::vector<ClipRef>& train = index.clips.train;
  if (train.empty()) return false;
  const RecordingInfo& first = index.files[train[0].file]->info();
  return (first.in_time_order || first.clips == 1) &&
         std::ranges::all_of(train, [&](const ClipRef& clip) { return clip.file == train[0].file; });
}

// What is missing of the splits is taken from the training clips.
void find_clips(FolderIndex& index, const FolderOptions& o, ActionsSeen& seen) {
  check_splits(o.path);
  const auto folders = split_folders(o.path);
  const RecordingOptions reading = reading_of(o, folders);
  index.cache = reading.cache;
  double test_fraction = o.test_fraction, valid_fraction = o.valid_fraction;
  for (const auto& [split, folder] : folders) {
    auto& clips = split == Split::train   ? index.clips.train
                  : split == Split::valid ? index.clips.valid
                                          : index.clips.test;
    add_files(index, folder, o, reading, seen, clips);
    if (split == Split::valid) valid_fraction = 0;
    if (split == Split::test) test_fraction = 0;
  }
  const bool pieces = are_pieces_of_one(index);
  if (o.split_time == true && !pieces) {
    fail(ErrorKind::usage,
         "[folder] split: time is for one recording, whose end is kept apart; '{}' holds {}, whose order in time "
         "nobody knows; leave "
         "split out, or put clips for testing into test/",
         o.path, index.files.size() > 1 ? fmt::format("{} recordings", index.files.size()) : "several clips");
  }
  const bool by_time = o.split_time.value_or(pieces);
  if (o.split_gap > 0 && !(by_time && test_fraction + valid_fraction > 0)) {
    fail(ErrorKind::usage,
         "[folder] split_gap is for one recording that is split by time; the clips of '{}' are split {}; leave it out",
         o.path, by_time ? "by folders" : "by their names");
  }
  const auto notes = by_time ? split_time(index.clips, test_fraction, valid_fraction, o.split_gap)
                             : split_clips(index.clips, test_fraction, valid_fraction,
                                           [&](const ClipRef& clip) { return lot(index, clip); });
  index.notes.insert(index.notes.end(), notes.begin(), notes.end());
  const auto is_short = [&](const ClipRef& clip) { return clip.frames < o.min_frames; };  // of pieces that were cut
  for (auto* clips : {&index.clips.train, &index.clips.valid, &index.clips.test}) std::erase_if(*clips, is_short);
  const std::vector<std::string>& own = index.files[0]->info().notes;
  index.notes.insert(index.notes.end(), own.begin(), own.end());
}

void find_code_format(FolderIndex& index, const FolderOptions& o, const std::vector<RecordingInfo>& infos) {
  std::string reason;
  index.codes = find_codes(infos, o.codebook_size, reason);
  index.looked_through = false;
  index.notes.push_back(fmt::format("codes of {} x {} for each frame, {} different ones: {}", index.codes.height,
                                    index.codes.width, index.codes.count, reason));
}

void find_ranges(FolderIndex& index, const FolderOptions& o, const std::vector<RecordingInfo>& infos) {
  const FoundChannels found = find_channels(infos, o);
  index.ranges = {found.channels, o.clamp, !o.mean.empty()};
  index.looked_through = o.low.empty() && o.mean.empty();  // by type or by all values
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

std::vector<SplitFolder> split_folders(const std::string& path) {
  if (!has_split(path, Split::train) || !(has_split(path, Split::valid) || has_split(path, Split::test))) {
    return {{Split::train, path}};
  }
  std::vector<SplitFolder> folders;
  for (const Split split : all_splits) {
    if (has_split(path, split)) folders.push_back({split, split_folder(path, split)});
  }
  return folders;
}

RecordingOptions reading_of(const FolderOptions& o, const std::vector<SplitFolder>& folders) {
  RecordingOptions reading = o.reading;
  reading.cache = std::make_shared<ArrayCache>(cache_bytes);
  reading.actions_required = reading.actions_required || !reading.actions_key.empty();
  if (o.reading.content != Content::codes || !reading.key.empty()) return reading;
  const FoundFiles found = find_recordings(folders[0].folder, Kinds::one);
  if (found.names.empty()) return reading;
  const std::string first = recording_path(folders[0].folder, found.names[0]);
  if (!holds_arrays(first)) return reading;
  const auto names = io::array_names(first);
  if (std::ranges::find(names, "codes") != names.end()) reading.key = "codes";
  return reading;
}

FolderIndex index_folder(const FolderOptions& options) {
  FolderIndex index;
  ActionsSeen seen;
  find_clips(index, options, seen);
  describe(index);
  std::vector<RecordingInfo> infos;
  for (const auto& file : index.files) infos.push_back(file->info());
  index.actions = describe_actions(infos, options, seen, index.notes);
  are_codes(infos[0]) ? find_code_format(index, options, infos) : find_ranges(index, options, infos);
  return index;
}

}  // namespace convssm::data
