// The heads of all files are read once, and again only for those that are opened anew (field_heads.h).
#include "convssm/data/field_recording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/slow_progress.h"
#include "convssm/data/field_file.h"
#include "convssm/data/field_heads.h"
#include "convssm/data/forcings.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/skipped_files.h"
#include "convssm/data/time_axis.h"

namespace convssm::data {
namespace {

constexpr double kSameTime = 1e-3;  // of a step

// All that is known when the files were looked at.
struct Series {
  std::vector<FileHead> heads;
  std::vector<std::pair<int64_t, int64_t>> pieces;  // first frame and frames of each clip
  std::optional<io::CfTime> time;
  TimeAxis axis;
  std::vector<double> seconds, intervals;  // of all frames; empty: nobody knows
  bool joined = true;
};

// The two Gregorian ones are the same from 1582-10-15 on.
bool same_calendar(const FieldFile& a, const FieldFile& b) {
  if (a.axes().calendar == b.axes().calendar) return true;
  const auto gregorian = [](const FieldFile& file) {
    const std::string& name = file.axes().calendar;
    return (name == "standard" || name == "proleptic_gregorian") && !file.times()->seconds.empty() &&
           std::ranges::min(file.times()->seconds) >= -12219292800.0;
  };
  return gregorian(a) && gregorian(b);
}

void check_same_grid(const FieldFile& first, const FieldFile& other) {
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
  if (!same_axis(first.axes().rows, other.axes().rows) || !same_axis(first.axes().columns, other.axes().columns)) {
    fail(ErrorKind::data,
         "[fields] all files must have one grid: '{}' is of {} x {}, '{}' of {} x {}, or of other coordinates",
         first.path(), first.height(), first.width(), other.path(), other.height(), other.width());
  }
  if (!same_calendar(first, other)) {
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

// The first of two files of a group that overlap, or behind the last one.
auto find_clash(const std::vector<FileHead>& heads) {
  return std::ranges::adjacent_find(heads, [](const FileHead& a, const FileHead& b) {
    return a.group == b.group && b.seconds.front() <= a.seconds.back();
  });
}

// Whether all files are of the same times, as members of an ensemble or simulations are; some may end earlier.
bool times_equal(const std::vector<FileHead>& heads) {
  const auto frames = [](const FileHead& head) { return head.seconds.size(); };
  const std::vector<double>& longest = std::ranges::max_element(heads, {}, frames)->seconds;
  return std::ranges::all_of(heads, [&](const FileHead& head) {
    return std::equal(head.seconds.begin(), head.seconds.end(), longest.begin());
  });
}

// Files that follow each other are one group. Else those of each folder are, if there are several, as of simulations of many files; and
// files of the same times are each a group.
void group_files(std::vector<FileHead>& heads, const io::CfTime& time, const std::string& path) {
  for (const FileHead& head : heads) find_time_axis(head.path, head.seconds, time);  // they grow
  std::ranges::stable_sort(heads, {}, [](const FileHead& head) { return head.seconds.front(); });
  if (find_clash(heads) == heads.end()) return;
  const auto folder = [](const FileHead& head) { return std::filesystem::path(head.path).parent_path(); };
  const bool alone = times_equal(heads);
  if (!alone) std::ranges::stable_sort(heads, {}, folder);
  for (size_t i = 1; i < heads.size(); ++i)
    heads[i].group = heads[i - 1].group + (alone || folder(heads[i]) != folder(heads[i - 1]));
  const auto clash = find_clash(heads);
  if (clash == heads.end()) return;
  fail(
      ErrorKind::data,
      "[fields] '{}': times of files overlap: '{}' goes on to {}, '{}' begins at {}; leave out what is there twice, or "
      "put files that are clips of their own into folders of their own",
      path, clash->path, time.text(clash->seconds.back()), (clash + 1)->path, time.text((clash + 1)->seconds.front()));
}

void place_files(Series& series, const std::string& path) {
  std::vector<FileHead>& heads = series.heads;
  if (series.time) {
    group_files(heads, *series.time, path);
  } else {
    for (size_t i = 0; i < heads.size(); ++i) heads[i].group = i;
  }
  series.joined = series.time && heads.back().group == 0;
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
  for (size_t from = 0, to = 0; from < series.heads.size(); from = to) {
    const FileHead& head = series.heads[from];
    std::vector<double> seconds;
    for (; to < series.heads.size() && series.heads[to].group == head.group; ++to)
      seconds.insert(seconds.end(), series.heads[to].seconds.begin(), series.heads[to].seconds.end());
    if (series.time) {
      add(series.joined ? path : head.path, head.first, seconds);
    } else {
      series.pieces.emplace_back(head.first, head.frames);
    }
  }
}

// What is left of the pieces between two times, both included.
void keep_period(Series& series, const std::string& from, const std::string& until, const std::string& path) {
  if (from.empty() && until.empty()) return;
  if (!series.time)
    fail(ErrorKind::data, "[fields] '{}' has no times; data.from and data.until choose frames by their times", path);
  const auto seconds = [&](const std::string& moment) {
    return io::CfTime("seconds since " + moment, series.time->calendar()).seconds(0);
  };
  const double first = from.empty() ? -INFINITY : seconds(from), last = until.empty() ? INFINITY : seconds(until);
  std::vector<std::pair<int64_t, int64_t>> kept;
  for (const auto& [begin, count] : series.pieces) {
    const auto piece = series.seconds.begin() + begin;
    const int64_t before = std::lower_bound(piece, piece + count, first) - piece;
    const int64_t end = std::upper_bound(piece, piece + count, last) - piece;
    if (before < end) kept.emplace_back(begin + before, end - before);
  }
  if (kept.empty()) {
    fail(ErrorKind::data, "[fields] '{}' has no frame from {} to {}: its times are {} to {}", path,
         from.empty() ? "the beginning" : from, until.empty() ? "the end" : until,
         series.time->text(series.seconds.front()), series.time->text(series.seconds.back()));
  }
  series.pieces = std::move(kept);
}

std::vector<std::string> files_of(const std::string& path) {
  if (is_field_file(path)) return {path};
  std::vector<std::string> paths = field_files(path);
  if (paths.empty()) fail(ErrorKind::data, "[fields] '{}' holds no NetCDF, Zarr or GRIB files", path);
  return paths;
}

// A file for each set of variables, as many archives have them, goes with those of the others that are of the same times.
std::vector<FileHead> join_variables(const std::vector<std::string>& paths, const FieldChoice& choice) {
  struct File {
    std::string path;
    int64_t frames;
    std::vector<double> seconds;
  };
  std::map<std::vector<std::string>, std::vector<File>> kinds;  // by their variables
  for (const std::string& path : paths) {
    FieldChoice own = choice;
    own.variables = field_names(path, choice);
    if (own.variables.empty()) {
      fail(ErrorKind::data, "[fields] '{}' has none of the variables {}; leave it out, or name one that it has", path,
           fmt::join(choice.variables, ", "));
    }
    const FieldFile file(path, own);
    kinds[own.variables].push_back({path, file.frames(), file.times() ? file.times()->seconds : std::vector<double>()});
  }
  std::vector<FileHead> heads;
  const std::vector<std::string>& names = kinds.begin()->first;
  const std::vector<File>& first = kinds.begin()->second;
  for (const File& file : first) heads.push_back({.path = file.path});
  for (auto kind = std::next(kinds.begin()); kind != kinds.end(); ++kind) {
    std::vector<File>& files = kind->second;
    for (size_t i = 0; i < first.size(); ++i) {
      const auto match = std::ranges::find_if(
          files, [&](const File& file) { return file.frames == first[i].frames && file.seconds == first[i].seconds; });
      const bool shares = std::ranges::any_of(
          kind->first, [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
      if (match == files.end() || shares || files.size() != first.size() - i) {
        fail(ErrorKind::data,
             "[fields] all files must have the same variables, or each some of them at the same times: '{}' has {}, "
             "'{}' has "
             "{}; name those to take by data.variables",
             first[i].path, fmt::join(names, ", "), files.empty() ? "no other" : files[0].path,
             fmt::join(kind->first, ", "));
      }
      heads[i].beside.push_back(match->path);
      files.erase(match);
    }
  }
  return heads;
}

// Whether two files have other variables. A file that cannot be read is told of later.
bool differ(const std::string& a, const std::string& b, const RecordingOptions& options) {
  try {
    return field_names(a, options.fields) != field_names(b, options.fields);
  } catch (const Error&) {
    if (!options.skip_errors) throw;
    return false;
  }
}

std::vector<FileHead> heads_of(const std::vector<std::string>& paths, const RecordingOptions& options) {
  if (paths.size() > 1 && differ(paths.front(), paths.back(), options)) return join_variables(paths, options.fields);
  std::vector<FileHead> heads;
  for (const std::string& path : paths) heads.push_back({.path = path});
  return heads;
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
        files_(series_.heads, info().reading.fields, info().named_channels, info().axes) {}

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
    const int64_t begin = piece(clip).first;
    std::vector<double> moments = frame_times(clip, first, count);
    if (moments.empty()) {
      for (int64_t t = 0; t < count; ++t) moments.push_back(static_cast<double>(begin + first + t));
    }
    const size_t group = series_.heads[file_of(begin)].group;
    return forcings_.maps(moments, group, [this](size_t file, const std::string& name, int64_t frame) {
      return files_.get(file)->read_known(name, frame);
    });
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
  const auto [begin, count] = series.pieces.back();
  const std::string span =
      fmt::format("{} to {}", series.time->text(series.seconds[static_cast<size_t>(series.pieces.front().first)]),
                  series.time->text(series.seconds[static_cast<size_t>(begin + count - 1)]));
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
    info.notes.push_back(fmt::format(
        "{} files {}", series.heads.size(),
        series.joined ? "in the order of their times are one recording"
        : series.time
            ? "of the same times are clips of their own, or those of each folder: clips for testing may be of times "
              "that are trained on"
            : "are clips of their own"));
  }
  describe_times(info, series);
  return info;
}

}  // namespace

std::unique_ptr<Recording> open_field_recording(const std::string& path, const RecordingOptions& options) {
  Series series;
  series.heads = heads_of(files_of(path), options);
  std::unique_ptr<FieldFile> first;
  const size_t files = series.heads.size();
  SlowProgress progress("reading the heads of files", files);
  SkippedFiles skipped;
  std::vector<FileHead> heads;
  heads.swap(series.heads);
  for (FileHead& head : heads) {
    progress.next();
    std::unique_ptr<FieldFile> file;
    try {
      file = std::make_unique<FieldFile>(head.path, options.fields, head.beside);
    } catch (const Error& error) {
      if (!options.skip_errors || files == 1) throw;
      skipped.add(head.path, error);
      continue;
    }
    if (first) check_same_grid(*first, *file);
    head.frames = file->frames();
    if (file->times()) head.seconds = file->times()->seconds;
    head.known = known_moments(options.forcings, *file);
    if (file->times() && !series.time) series.time = file->times()->time;
    series.heads.push_back(std::move(head));
    if (!first) first = std::move(file);
  }
  if (!first) fail(ErrorKind::data, "[fields] '{}': {}", path, skipped.text(files));
  place_files(series, path);
  find_pieces(series, path);
  keep_period(series, options.from, options.until, path);
  RecordingInfo info = describe(path, options, *first, series);
  if (!skipped.none()) {
    info.notes.push_back(skipped.text(files));
    if (options.access == Access::random) log_warning("data: {}", info.notes.back());
  }
  const double tolerance = std::max(0.5, kSameTime * series.axis.step);
  Forcings forcings(options.forcings, options.fields, *first, series.heads, series.time, series.time ? tolerance : 0);
  if (forcings.count() > 0 && options.actions) {
    info.has_actions = true;
    info.action_maps = forcings.count();
    info.foresees_actions = true;
  }
  return std::make_unique<FieldRecording>(std::move(info), std::move(series), std::move(forcings));
}

}  // namespace convssm::data
