// The heads of all files are read once. Later a few of them stay open, those that were read last: a recording may have more files than
// a process may open.
#include "convssm/data/field_recording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <list>
#include <mutex>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/slow_progress.h"
#include "convssm/data/field_file.h"
#include "convssm/data/forcings.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/skipped_files.h"
#include "convssm/data/time_axis.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOpenFiles = 4;

// What is remembered of a file.
struct FileHead {
  std::string path;
  int64_t first = 0, frames = 0;  // of the recording
  std::vector<double> seconds;    // empty: nobody knows
};

// The files that are open, by their places.
class OpenFiles {
 public:
  OpenFiles(const std::vector<FileHead>& heads, FieldChoice choice) : heads_(heads), choice_(std::move(choice)) {}

  std::shared_ptr<const FieldFile> get(size_t place) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(open_, place, &Entry::first);
    if (found != open_.end()) {
      open_.splice(open_.begin(), open_, found);
      return open_.front().second;
    }
    const FileHead& head = heads_[place];
    auto file = std::make_shared<const FieldFile>(head.path, choice_);
    if (file->frames() != head.frames) {
      fail(ErrorKind::data, "[fields] '{}' has changed since it was opened: it had {} frames, now {}", head.path,
           head.frames, file->frames());
    }
    open_.emplace_front(place, file);
    if (open_.size() > kOpenFiles) open_.pop_back();
    return file;
  }

 private:
  using Entry = std::pair<size_t, std::shared_ptr<const FieldFile>>;
  const std::vector<FileHead>& heads_;
  FieldChoice choice_;
  std::mutex mutex_;
  std::list<Entry> open_;  // the one that was read last first
};

// All that is known when the files were looked at.
struct Series {
  std::vector<FileHead> heads;
  std::vector<std::pair<int64_t, int64_t>> pieces;  // first frame and frames of each clip
  std::optional<io::CfTime> time;
  TimeAxis axis;
  std::vector<double> seconds, intervals;  // of all frames; empty: nobody knows
  bool joined = true;
};

void check_same_grid(const FieldFile& first, const FieldFile& other) {
  const auto same = [](const Axis& a, const Axis& b) {
    return std::ranges::equal(a.values, b.values,
                              [](double x, double y) { return std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(x)); });
  };
  const auto name = [](const FieldChannel& channel) { return channel.name; };
  if (!std::ranges::equal(first.channels(), other.channels(), {}, name, name)) {
    const auto names = [&](const FieldFile& file) {
      std::vector<std::string> all;
      for (const FieldChannel& channel : file.channels()) all.push_back(channel.name);
      return fmt::format("{}", fmt::join(all, ", "));
    };
    fail(ErrorKind::data,
         "[fields] all files must have the same variables: '{}' has {}, '{}' has {}; name those to take by "
         "data.variables",
         first.path(), names(first), other.path(), names(other));
  }
  if (!same(first.axes().rows, other.axes().rows) || !same(first.axes().columns, other.axes().columns)) {
    fail(ErrorKind::data,
         "[fields] all files must have one grid: '{}' is of {} x {}, '{}' of {} x {}, or of other coordinates",
         first.path(), first.height(), first.width(), other.path(), other.height(), other.width());
  }
  if (first.axes().calendar != other.axes().calendar) {
    fail(ErrorKind::data, "[fields] all files must have times of one calendar: '{}' has {}, '{}' has {}", first.path(),
         first.times() ? first.axes().calendar : "no times", other.path(),
         other.times() ? other.axes().calendar : "no times");
  }
  for (size_t c = 0; c < first.channels().size(); ++c) {
    const FieldChannel &a = first.channels()[c], &b = other.channels()[c];
    if (a.units == b.units) continue;
    fail(ErrorKind::data, "[fields] {} has the units '{}' in '{}' and '{}' in '{}'", a.name, a.units, first.path(),
         b.units, other.path());
  }
}

bool times_grow(const std::vector<FileHead>& heads) {
  for (size_t i = 1; i < heads.size(); ++i) {
    if (heads[i].seconds.front() <= heads[i - 1].seconds.back()) return false;
  }
  return true;
}

// Whether all files are of the same times, as members of an ensemble or simulations are.
bool times_equal(const std::vector<FileHead>& heads) {
  return std::ranges::all_of(heads,
                             [&](const FileHead& head) { return head.seconds.front() == heads[0].seconds.front(); });
}

void place_files(Series& series, const std::string& path) {
  std::vector<FileHead>& heads = series.heads;
  const bool timed = !heads[0].seconds.empty();
  if (timed) std::ranges::stable_sort(heads, {}, [](const FileHead& head) { return head.seconds.front(); });
  series.joined = timed && times_grow(heads);
  if (timed && !series.joined && !times_equal(heads)) {
    const auto clash = std::ranges::adjacent_find(
        heads, [](const FileHead& a, const FileHead& b) { return b.seconds.front() <= a.seconds.back(); });
    fail(ErrorKind::data,
         "[fields] '{}': times of files overlap: '{}' goes on to {}, '{}' begins at {}; leave out what is there twice, "
         "or put files "
         "that are clips of their own into folders of their own",
         path, clash->path, series.time->text(clash->seconds.back()), (clash + 1)->path,
         series.time->text((clash + 1)->seconds.front()));
  }
  int64_t first = 0;
  for (FileHead& head : heads) {
    head.first = first;
    first += head.frames;
    series.seconds.insert(series.seconds.end(), head.seconds.begin(), head.seconds.end());
  }
}

void find_pieces(Series& series, const std::string& path) {
  const auto add = [&](const std::string& name, int64_t first, const std::vector<double>& seconds) {
    const TimeAxis axis = find_time_axis(name, seconds, *series.time);
    const bool even = axis.even && series.axis.even;
    if (series.pieces.empty()) series.axis = axis;
    series.axis.even = even;
    for (const auto& [begin, count] : axis.pieces) series.pieces.emplace_back(first + begin, count);
    const auto intervals = axis.intervals(seconds, *series.time);
    series.intervals.insert(series.intervals.end(), intervals.begin(), intervals.end());
  };
  if (series.joined) return add(path, 0, series.seconds);
  for (const FileHead& head : series.heads) {
    if (series.time) {
      add(head.path, head.first, head.seconds);
    } else {
      series.pieces.emplace_back(head.first, head.frames);
    }
  }
}

std::vector<std::string> files_of(const std::string& path) {
  if (is_field_file(path)) return {path};
  std::vector<std::string> paths = field_files(path);
  if (paths.empty()) fail(ErrorKind::data, "[fields] '{}' holds no NetCDF, Zarr or GRIB files", path);
  return paths;
}

// The first, middle and last frame: whether some pixels are missing, which a whole reading would tell for certain.
bool some_missing(const FieldFile& file, bool skip_errors) {
  for (const int64_t frame : {int64_t{0}, file.frames() / 2, file.frames() - 1}) {
    try {
      const io::Array pixels = file.read(frame, 1);
      if (std::ranges::any_of(pixels.values<float>(), [](float x) { return std::isnan(x); })) return true;
    } catch (const Error&) {
      if (!skip_errors) throw;
    }
  }
  return false;
}

class FieldRecording : public Recording {
 public:
  FieldRecording(RecordingInfo about, Series series, Forcings forcings)
      : Recording(std::move(about), nullptr),
        series_(std::move(series)),
        forcings_(std::move(forcings)),
        files_(series_.heads, info().reading.fields) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    int64_t from = piece(clip).first + first;
    size_t place = file_of(from);
    const FileHead& head = series_.heads[place];
    if (from + count <= head.first + head.frames) return files_.get(place)->read(from - head.first, count);
    io::Array all =
        io::array_of_file(info().path, io::DType::f32, {count, info().channels, info().height, info().width});
    std::byte* out = all.bytes().data();
    for (int64_t left = count; left > 0; ++place) {
      const FileHead& next = series_.heads[place];
      const int64_t some = std::min(left, next.first + next.frames - from);
      const io::Array part = files_.get(place)->read(from - next.first, some);
      std::memcpy(out, part.bytes().data(), part.byte_count());
      out += part.byte_count(), from += some, left -= some;
    }
    return all;
  }

  std::vector<double> frame_times(int64_t clip, int64_t first, int64_t count) const override {
    if (series_.seconds.empty()) return {};
    const auto [begin, frames] = piece(clip);
    std::vector<double> all;
    for (int64_t t = first; t < first + count; ++t) {
      const int64_t last = begin + frames - 1, at = begin + t;
      all.push_back(at <= last
                        ? series_.seconds[static_cast<size_t>(at)]
                        : series_.axis.later(series_.seconds[static_cast<size_t>(last)], at - last, *series_.time));
    }
    return all;
  }

  std::vector<double> frame_intervals(int64_t clip, int64_t first, int64_t count) const override {
    if (series_.intervals.empty() || series_.axis.even) return {};
    const auto from = series_.intervals.begin() + piece(clip).first + first;
    return {from, from + count};
  }

  at::Tensor actions(int64_t clip, int64_t first, int64_t count) override {
    return forcings_.maps(frame_times(clip, first, count));
  }

 private:
  std::pair<int64_t, int64_t> piece(int64_t clip) const { return series_.pieces[static_cast<size_t>(clip)]; }

  size_t file_of(int64_t frame) const {
    const auto after = std::ranges::upper_bound(series_.heads, frame, {}, &FileHead::first);
    return static_cast<size_t>(after - series_.heads.begin()) - 1;
  }

  Series series_;
  Forcings forcings_;
  OpenFiles files_;
};

void describe_times(RecordingInfo& info, const Series& series) {
  if (!series.time) {
    info.notes.push_back("no times: frames are taken to follow each other evenly");
    return;
  }
  info.axes.step = series.axis.step, info.axes.months = series.axis.months;
  info.in_time_order = series.joined;
  const std::string span =
      fmt::format("{} to {}", series.time->text(series.seconds.front()), series.time->text(series.seconds.back()));
  info.notes.push_back(series.axis.step == 0
                           ? "times: " + span
                           : fmt::format("times: {}, a frame every {}{}", span, series.axis.step_text(),
                                         series.axis.even ? "" : ", unevenly"));
  if (!series.joined || series.axis.gaps.empty()) return;
  const auto shown = std::min<size_t>(3, series.axis.gaps.size());
  info.notes.push_back(fmt::format(
      "{} gap{} in time, never trained across: {}{}", series.axis.gaps.size(), series.axis.gaps.size() == 1 ? "" : "s",
      fmt::join(series.axis.gaps.begin(), series.axis.gaps.begin() + static_cast<int64_t>(shown), "; "),
      shown < series.axis.gaps.size() ? "; ..." : ""));
}

RecordingInfo describe(const std::string& path, const RecordingOptions& o, const FieldFile& first,
                       const Series& series) {
  RecordingInfo info = begin_info(path, "field", o);
  info.dtype = io::DType::f32;
  info.layout = {"TCHW", fmt::format("variables of {}", first.kind())};
  info.channels = std::ssize(first.channels()), info.height = first.height(), info.width = first.width();
  for (const FieldChannel& channel : first.channels())
    info.named_channels.push_back({channel.name, 0, 255, channel.units});
  info.clips = std::ssize(series.pieces);
  for (const auto& [begin, count] : series.pieces) info.lengths.push_back(count);
  info.frames = std::ranges::min(info.lengths);
  info.shape = {info.all_frames(), info.channels, info.height, info.width};
  info.axes = first.axes();
  info.may_miss = o.missing == Missing::mask ||
                  (o.missing == Missing::found && (first.declares_missing() || some_missing(first, o.skip_errors)));
  if (info.may_miss)
    info.notes.push_back(
        "pixels may be missing: they are left out of the loss and of scores (data.missing=fail makes them errors)");
  if (series.heads.size() > 1) {
    info.notes.push_back(
        fmt::format("{} files {}", series.heads.size(),
                    series.joined ? "in the order of their times are one recording" : "are clips of their own"));
  }
  describe_times(info, series);
  return info;
}

}  // namespace

std::unique_ptr<Recording> open_field_recording(const std::string& path, const RecordingOptions& options) {
  const std::vector<std::string> paths = files_of(path);
  Series series;
  std::unique_ptr<FieldFile> first;
  SlowProgress progress("reading the heads of files", paths.size());
  SkippedFiles skipped;
  for (const std::string& each : paths) {
    progress.next();
    std::unique_ptr<FieldFile> file;
    try {
      file = std::make_unique<FieldFile>(each, options.fields);
    } catch (const Error& error) {
      if (!options.skip_errors || paths.size() == 1) throw;
      skipped.add(each, error);
      continue;
    }
    if (first) check_same_grid(*first, *file);
    series.heads.push_back({each, 0, file->frames(), file->times() ? file->times()->seconds : std::vector<double>()});
    if (file->times() && !series.time) series.time = file->times()->time;
    if (!first) first = std::move(file);
  }
  if (!first) fail(ErrorKind::data, "[fields] '{}': {}", path, skipped.text(paths.size()));
  place_files(series, path);
  find_pieces(series, path);
  RecordingInfo info = describe(path, options, *first, series);
  if (!skipped.none()) {
    info.notes.push_back(skipped.text(paths.size()));
    if (options.access == Access::random) log_warning("data: {}", info.notes.back());
  }
  Forcings forcings(options.forcings, *first, series.time);
  if (forcings.count() > 0 && options.actions) {
    info.has_actions = true;
    info.action_maps = forcings.count();
    info.foresees_actions = true;
  }
  return std::make_unique<FieldRecording>(std::move(info), std::move(series), std::move(forcings));
}

}  // namespace convssm::data
