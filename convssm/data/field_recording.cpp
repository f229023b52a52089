// The heads of all files are read once, and again only for those that are opened anew (field_heads.h).
#include "convssm/data/field_recording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/slow_progress.h"
#include "convssm/data/field_file.h"
#include "convssm/data/field_heads.h"
#include "convssm/data/field_series.h"
#include "convssm/data/forcings.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/skipped_files.h"

namespace convssm::data {
namespace {

constexpr double kSameTime = 1e-3;  // of a step

std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path) || is_field_file(path)) return {path};
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
  series.heads = heads_of(files_of(path), options.fields, options.skip_errors);
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
