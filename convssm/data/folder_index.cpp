#include "convssm/data/folder_index.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/value_range.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

// Describes all files below `folder` and adds their clips to `clips`.
void add_files(FolderIndex& index, const std::string& folder, const FolderOptions& o, std::vector<ClipRef>& clips) {
  const FoundFiles found = find_clip_files(folder);
  if (found.names.empty()) {
    fail(ErrorKind::data, "[folder] '{}' holds no .npy or .npz files{}", folder,
         found.others > 0 ? fmt::format(", but {} others", found.others) : "");
  }
  for (const std::string& name : found.names) {
    const std::string path = fs::is_directory(folder) ? (fs::path(folder) / name).string() : folder;
    const ClipFile file = describe_clip_file(path, name, o.key, o.layout);
    if (!index.files.empty()) check_fit(index.files[0], file);
    for (int64_t row = 0; row < file.clips; ++row) clips.push_back({index.files.size(), row, 0, file.frames});
    index.files.push_back(file);
  }
  if (found.others > 0) index.notes.push_back(fmt::format("{} files of other kinds are left out", found.others));
}

// In [0,1), by the name of the clip and nothing else.
double lot(const FolderIndex& index, const ClipRef& clip) {
  return Stream(0, "folder: " + index.files[clip.file].name, static_cast<uint64_t>(clip.row)).uniform();
}

// A single recording: the last part of its time is kept for testing.
void split_time(FolderIndex& index, double fraction) {
  const ClipRef all = index.train[0];
  const auto kept = static_cast<int64_t>(static_cast<double>(all.frames) * fraction);
  if (kept == 0) return;
  index.train[0].frames = all.frames - kept;
  index.test.push_back({all.file, all.row, all.frames - kept, kept});
  index.notes.push_back(fmt::format("one recording: its last {} of {} frames are for testing", kept, all.frames));
}

void split_clips(FolderIndex& index, double fraction) {
  if (fraction <= 0) return;
  if (index.train.size() == 1) return split_time(index, fraction);
  std::vector<ClipRef> all;
  all.swap(index.train);
  for (const ClipRef& clip : all) (lot(index, clip) < fraction ? index.test : index.train).push_back(clip);
  const auto smaller = [&](const ClipRef& a, const ClipRef& b) { return lot(index, a) < lot(index, b); };
  const auto move = [&](std::vector<ClipRef>& from, std::vector<ClipRef>& to, auto clip) {
    to.push_back(*clip);
    from.erase(clip);
  };
  if (index.test.empty()) move(index.train, index.test, std::ranges::min_element(index.train, smaller));
  if (index.train.empty()) move(index.test, index.train, std::ranges::max_element(index.test, smaller));
  index.notes.push_back(fmt::format("no train/ and test/: {} of {} clips are for testing, by a hash of their names",
                                    index.test.size(), all.size()));
}

void find_clips(FolderIndex& index, const FolderOptions& o) {
  const std::string train = (fs::path(o.path) / "train").string(), test = (fs::path(o.path) / "test").string();
  if (fs::is_directory(train) && fs::is_directory(test)) {
    add_files(index, train, o, index.train);
    add_files(index, test, o, index.test);
  } else {
    add_files(index, o.path, o, index.train);
    split_clips(index, o.test_fraction);
  }
}

void find_actions(FolderIndex& index) {
  if (!index.files[0].has_actions) return;
  for (const ClipFile& file : index.files) {
    const Extremes found = extremes(io::ArrayFile(file.path, "actions").read());
    if (found.low < 0) {
      fail(ErrorKind::data, "[folder] '{}': actions must be 0 or more, found {}", file.path, found.low);
    }
    index.action_count = std::max(index.action_count, static_cast<int64_t>(found.high) + 1);
  }
  index.notes.push_back(fmt::format("{} different actions", index.action_count));
}

void describe(FolderIndex& index) {
  const ClipFile& first = index.files[0];
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} training and {} test clips in {} file{}", index.train.size(), index.test.size(),
                              index.files.size(), index.files.size() == 1 ? "" : "s"));
  lines.push_back(fmt::format("frames of {}, read from {} {}{}", frame_text(first), io::dtype_name(first.info.dtype),
                              io::shape_text(first.info.shape),
                              first.key.empty() ? "" : fmt::format(" of the key '{}'", first.key)));
  std::string layout = fmt::format("layout {}: {}", first.layout.letters, first.layout.reason);
  const auto differs = [&](const ClipFile& file) { return file.layout.letters != first.layout.letters; };
  const auto others = std::ranges::count_if(index.files, differs);
  if (others > 0) layout += fmt::format("; {} files have another one", others);
  lines.push_back(layout);
  index.notes.insert(index.notes.begin(), lines.begin(), lines.end());
}

}  // namespace

FolderIndex index_folder(const FolderOptions& options) {
  FolderIndex index;
  find_clips(index, options);
  describe(index);
  find_actions(index);
  const FoundRange found = find_range(index.files, options.low, options.high);
  index.range = {found.low, found.high, options.clamp};
  index.notes.push_back(fmt::format("values {} to {} become -1 to 1: {}", found.low, found.high, found.reason));
  return index;
}

}  // namespace convssm::data
