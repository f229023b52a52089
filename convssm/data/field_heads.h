// The files of a recording in grid files: what is remembered of each, and the few that are open, those that were read last: a recording
// may have more files than a process may open. A file that is not what it was is refused: its frames are no longer those of the
// times, coordinates and memory that go with them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/data/field_file.h"
#include "convssm/data/frame_format.h"

namespace convssm::data {

struct FileHead {
  std::string path = {};
  std::vector<std::string> beside = {};  // files of other variables of the same frames
  int64_t first = 0, frames = 0;         // of the recording
  size_t group = 0;                      // files of one group follow each other in time
  std::vector<double> seconds = {};      // empty: nobody knows
  // Of each forcing that is a field (FieldFile::known_moments).
  std::vector<std::vector<double>> known = {};
};

class OpenFiles {
 public:
  // All files have these channels and this grid. `heads` outlive it.
  OpenFiles(const std::vector<FileHead>& heads, FieldChoice choice, std::vector<Channel> channels, Axes axes)
      : heads_(heads), choice_(std::move(choice)), channels_(std::move(channels)), axes_(std::move(axes)) {}

  // From several threads at once. Error(data) if it has changed since its head was read.
  std::shared_ptr<const FieldFile> get(size_t place) {
    const std::lock_guard lock(mutex_);
    const FileHead& head = heads_[place];
    std::error_code none;  // of a file that is away: then it is opened, which says so
    auto written = std::filesystem::last_write_time(head.path, none);
    for (const std::string& path : head.beside)
      written = std::max(written, std::filesystem::last_write_time(path, none));
    if (const auto found = std::ranges::find(open_, place, &Entry::place); found != open_.end()) {
      open_.splice(open_.begin(), open_, found);
      if (found->written == written) return found->file;
      open_.pop_front();
    }
    auto file = std::make_shared<const FieldFile>(head.path, choice_, head.beside);
    check(head, *file);
    open_.push_front({place, written, file});
    if (open_.size() > kOpen) open_.pop_back();
    return file;
  }

 private:
  static constexpr size_t kOpen = 16;

  struct Entry {
    size_t place;
    std::filesystem::file_time_type written;
    std::shared_ptr<const FieldFile> file;
  };

  void check(const FileHead& head, const FieldFile& file) const {
    const auto same_channel = [](const FieldChannel& a, const Channel& b) {
      return a.name == b.name && a.units == b.units;
    };
    const auto seconds = file.times() ? file.times()->seconds : std::vector<double>();
    std::string what;
    if (file.frames() != head.frames) {
      what = fmt::format("it had {} frames, now {}", head.frames, file.frames());
    } else if (seconds != head.seconds) {
      what = "its frames are of other times";
    } else if (!same_axis(file.axes().rows, axes_.rows) || !same_axis(file.axes().columns, axes_.columns)) {
      what = fmt::format("its grid was {} x {}, now it is {} x {} or of other coordinates", axes_.rows.values.size(),
                         axes_.columns.values.size(), file.height(), file.width());
    } else if (!std::ranges::equal(file.channels(), channels_, same_channel)) {
      what = "its variables or their units are others";
    } else {
      return;
    }
    fail(ErrorKind::data,
         "[fields] '{}' has changed since it was opened: {}; write to another file, and start again when this one is "
         "complete",
         head.path, what);
  }

  const std::vector<FileHead>& heads_;
  FieldChoice choice_;
  std::vector<Channel> channels_;
  Axes axes_;
  std::mutex mutex_;
  std::list<Entry> open_;  // the one that was read last first
};

}  // namespace convssm::data
