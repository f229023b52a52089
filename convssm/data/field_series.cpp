#include "convssm/data/field_series.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "convssm/base/error.h"
#include "convssm/data/field_variables.h"

namespace convssm::data {
namespace {

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
             "'{}' has {}; name those to take by data.variables",
             first[i].path, fmt::join(names, ", "), files.empty() ? "no other" : files[0].path,
             fmt::join(kind->first, ", "));
      }
      heads[i].beside.push_back(match->path);
      files.erase(match);
    }
  }
  return heads;
}

// Whether two files have other variables. One that cannot be read is told of later.
bool differ(const std::string& a, const std::string& b, const FieldChoice& choice, bool skip_errors) {
  try {
    return field_names(a, choice) != field_names(b, choice);
  } catch (const Error&) {
    if (!skip_errors) throw;
    return false;
  }
}

}  // namespace

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
  find_pieces(series, path);
}

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

std::vector<FileHead> heads_of(const std::vector<std::string>& paths, const FieldChoice& choice, bool skip_errors) {
  if (paths.size() > 1 && differ(paths.front(), paths.back(), choice, skip_errors))
    return join_variables(paths, choice);
  std::vector<FileHead> heads;
  for (const std::string& path : paths) heads.push_back({.path = path});
  return heads;
}

}  // namespace convssm::data
