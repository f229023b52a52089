// Reads every file once: what is found here is what training would find, only that the first problem does not end it.
#include "convssm/data/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/base/slow_progress.h"
#include "convssm/data/codes.h"
#include "convssm/data/folder_actions.h"
#include "convssm/data/folder_index.h"
#include "convssm/data/recording_files.h"
#include "convssm/data/skipped_files.h"
#include "convssm/data/value_range.h"
#include "convssm/io/array_file.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/grid_open.h"
#include "convssm/io/idx.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLookedThrough = uint64_t{2} << 30;  // bytes of a file whose values are all looked at

// IDX files are often compressed.
bool may_be_idx(const std::string& path) {
  const std::string ending = fs::is_directory(path) ? "" : io::reading_ending(path);
  return ending == ".idx" || ending == ".gz";
}

ArraySummary summary_of(const std::string& name, const io::ArrayInfo& info) {
  return {name, std::string(io::dtype_name(info.dtype)), io::shape_text(info.shape)};
}

std::string yaml_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

io::Array read_idx(const std::string& path) {
  try {
    return io::read_idx(path);
  } catch (const FormatError& error) {
    if (io::file_kind(path).ending == ".idx") throw;
    fail(ErrorKind::data, "{}; a gzip file is read if it holds IDX, others must be unpacked first", error.what());
  }
}

io::Array reshaped(const io::Array& array, const std::vector<int64_t>& shape) {
  io::Array copy(array.dtype(), shape);
  std::ranges::copy(array.bytes(), copy.bytes().begin());
  return copy;
}

void inspect_idx(Inspection& found) {
  const io::Array array = read_idx(found.path);
  found.arrays.push_back(summary_of("", {array.dtype(), array.shape()}));
  const std::vector<int64_t> flat{1, 1, 1, static_cast<int64_t>(array.element_count())};
  found.values = channel_extremes(reshaped(array, flat))[0];
  found.yaml = fmt::format("data:\n  name: moving-mnist\n  images: {}\n", yaml_text(found.path));
}

// One number, or a list with one for each channel.
std::string numbers_yaml(const std::vector<double>& values) {
  return values.size() == 1 ? fmt::format("{}", values[0]) : fmt::format("[{}]", fmt::join(values, ", "));
}

// Nothing if the dataset finds the values that become -1 and 1 itself, otherwise those that are there.
std::string range_yaml(const Inspection& found) {
  try {
    if (!found.files[0].named_channels.empty()) fail(ErrorKind::data, "fields have ranges of their own");
    usual_range(found.files[0].dtype, found.values);
    return "";
  } catch (const Error&) {
    std::vector<double> low, high;
    for (const Extremes& channel : found.channels) {
      low.push_back(channel.low);
      high.push_back(channel.high > channel.low ? channel.high : channel.low + 1);  // of one value only
    }
    return fmt::format(
        "  low: {}   # the values found; choose what should become -1 and 1\n  high: {}\n"
        "  clamp: true   # later values outside of them are cut; false: an error\n",
        numbers_yaml(low), numbers_yaml(high));
  }
}

// Pieces between gaps that are shorter than this are left out: so many frames that nine tenths of all are in others; 0: there are no gaps.
int64_t least_frames(const RecordingInfo& info) {
  constexpr int64_t most = 60;
  if (!info.in_time_order || info.lengths.size() < 2) return 0;
  for (int64_t least = most; least > 2; --least) {
    int64_t kept = 0;
    for (const int64_t length : info.lengths) kept += length >= least ? length : 0;
    if (10 * kept >= 9 * info.all_frames()) return least;
  }
  return 2;
}

std::string folder_yaml(const Inspection& found, const nlohmann::json& options) {
  std::string yaml = fmt::format("data:\n  name: folder\n  path: {}\n", yaml_text(found.path));
  for (const auto& [key, value] : options.items()) {
    if (key != "path" && value != "") yaml += fmt::format("  {}: {}\n", key, value.dump());
  }
  const RecordingInfo& info = found.files[0];
  if (!info.named_channels.empty() && !options.contains("variables")) {
    std::vector<std::string> names;
    for (const Channel& channel : info.named_channels) names.push_back(yaml_text(channel.name));
    yaml += fmt::format("  variables: [{}]\n", fmt::join(names, ", "));
  }
  const int64_t least = least_frames(info);
  if (least > 0 && !options.contains("min_frames")) {
    yaml += fmt::format("  min_frames: {}   # pieces between gaps that are shorter are left out\n", least);
  }
  const bool given = options.contains("low") || options.contains("high") || options.contains("mean");
  return given || !found.codes.none() ? yaml : yaml + range_yaml(found);
}

void list_arrays(Inspection& found, const std::string& path) {
  constexpr size_t shown = 20;  // a file may hold thousands of episodes
  const auto names = io::array_names(path);
  for (const auto& array : names | std::views::take(shown)) {
    try {
      found.arrays.push_back(summary_of(array, io::ArrayFile(path, array).info()));
    } catch (const Error& error) {
      if (names.size() == 1) throw;
      found.notes.push_back(error.what());  // of one that may not be wanted
    }
  }
  if (names.size() > shown) found.notes.push_back(fmt::format("{} more arrays in '{}'", names.size() - shown, path));
}

void list_variables(Inspection& found, const std::string& path) {
  const std::string first = is_field_file(path) ? path : field_files(path).at(0);
  const auto file = io::open_grid(first);
  for (const io::GridVariable& variable : file->variables()) {
    if (variable.shape.size() < 2) continue;  // coordinates
    ArraySummary summary = summary_of(variable.name, {variable.dtype, variable.shape});
    summary.dimensions = fmt::format("[{}]", fmt::join(variable.dimensions, ", "));
    found.arrays.push_back(summary);
  }
}

// What is to be known of one file; nothing is added to the findings if it cannot be read.
struct FileFindings {
  RecordingInfo info;
  std::vector<Extremes> values;
  std::vector<TimeSpan> spans = {};
};

// Of each clip; empty if nobody knows when frames were taken.
std::vector<TimeSpan> spans_of(const Recording& recording) {
  const RecordingInfo& info = recording.info();
  std::vector<TimeSpan> spans;
  for (int64_t clip = 0; clip < info.clips; ++clip) {
    const std::vector<double> first = recording.read_times(clip, 0, 1);
    if (first.empty()) return {};
    spans.push_back({first[0], recording.read_times(clip, info.length(clip) - 1, 1)[0], info.length(clip)});
  }
  return spans;
}

FileFindings look_at(const std::string& path, const FolderOptions& o, const RecordingOptions& reading,
                     ActionsSeen& seen) {
  const auto recording = open_recording(path, reading);
  check_field_options(recording->info());
  FileFindings found{recording->info(), {}, spans_of(*recording)};
  const RecordingInfo& info = found.info;
  const uint64_t bytes = static_cast<uint64_t>(info.all_frames()) * info.frame_elements() * io::dtype_size(info.dtype);
  const uint64_t every = info.sequential ? 1 : 1 + bytes / kLookedThrough;
  found.values = recording_extremes(info, every);
  if (every > 1)
    found.info.notes.push_back(
        fmt::format("one of {} parts of {} was looked at for its values", every, format_bytes(bytes)));
  look_at_actions(*recording, o, seen);
  return found;
}

void add_file(Inspection& found, const FileFindings& file) {
  const RecordingInfo& info = file.info;
  if (!found.files.empty()) check_fit(found.files[0], info);
  found.channels.resize(static_cast<size_t>(info.channels));
  Extremes whole;
  for (size_t c = 0; c < file.values.size(); ++c) {
    found.channels[c].add(file.values[c]);
    whole.add(file.values[c]);
  }
  found.values.add(whole);
  found.spans.insert(found.spans.end(), file.spans.begin(), file.spans.end());
  const std::string bad = not_finite_text(info, whole);
  if (info.reading.skip_errors && !bad.empty()) {
    found.notes.push_back(bad);
  } else if (found.problem.empty()) {
    found.problem = bad;
  }
  found.clips += static_cast<uint64_t>(info.clips);
  found.shortest = found.files.empty() ? info.frames : std::min(found.shortest, info.frames);
  found.longest = std::max(found.longest, info.longest());
  if (found.files.empty()) found.notes.insert(found.notes.end(), info.notes.begin(), info.notes.end());
  found.files.push_back(info);
}

// All files of a folder. The reason of the first that cannot be read goes to `reason`.
void inspect_folder(Inspection& found, const std::string& folder, const FolderOptions& o,
                    const RecordingOptions& reading, ActionsSeen& seen, std::string& reason) {
  const FoundFiles files = find_recordings(folder, Kinds::one);
  if (files.names.empty()) fail_no_recordings(folder, files);
  SlowProgress progress("looking through " + folder, files.names.size());
  for (const std::string& name : files.names) {
    progress.next();
    const std::string path = recording_path(folder, name);
    RecordingOptions own = reading;
    own.name = name;
    FileFindings file;
    try {
      if (holds_arrays(path) && found.arrays.empty()) list_arrays(found, path);  // before anything goes wrong
      if (found.arrays.empty() && holds_fields(path)) list_variables(found, path);
      file = look_at(path, o, own, seen);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) throw;
      if (found.broken.empty()) reason = error.what();
      found.broken.push_back(path);
      continue;
    }
    if (found.arrays.empty()) found.arrays.push_back(summary_of("", {file.info.dtype, file.info.shape}));
    add_file(found, file);
  }
  if (files.others > 0) found.notes.push_back(left_out_text(folder, files));
}

void note_broken(Inspection& found, const std::string& reason, bool skip) {
  if (found.broken.empty()) return;
  const size_t all = found.broken.size() + found.files.size();
  if (skip && !found.files.empty()) {
    SkippedFiles skipped;
    for (const std::string& path : found.broken) skipped.add(path, Error(ErrorKind::data, reason));
    found.notes.push_back(skipped.text(all));
  } else {
    found.problem = all == 1 ? reason
                             : fmt::format("{} ({} of {} files cannot be read; on_error: skip leaves them out)", reason,
                                           found.broken.size(), all);
  }
}

void inspect_files(Inspection& found, const nlohmann::json& options) {
  const FolderOptions o = FolderOptions::from_json(options);
  const auto folders = split_folders(found.path);
  const RecordingOptions reading = reading_of(o, folders);
  ActionsSeen seen;
  std::string reason;
  for (const auto& [split, folder] : folders) {
    const uint64_t before = found.clips;
    inspect_folder(found, folder, o, reading, seen, reason);
    if (folders.size() > 1) found.splits.emplace_back(name(split), found.clips - before);
  }
  note_broken(found, reason, o.skip_errors);
  if (found.files.empty()) return;
  describe_actions(found.files, o, seen, found.notes);
  if (are_codes(found.files[0])) found.codes = find_codes(found.files, o.codebook_size, reason);
  found.yaml = folder_yaml(found, options);
  check_splits(found.path);
}

// Bytes as they are. Other values by what was found: three channels together, because they are colours, others each
// by its own.
PixelRanges shown_ranges(const Inspection& found) {
  PixelRanges ranges{{}, true};
  for (const Extremes& own : found.channels) {
    const Extremes& values = found.channels.size() == 3 ? found.values : own;
    const bool bytes = found.files[0].dtype == io::DType::u8 || values.high <= values.low;
    ranges.channels.push_back(bytes ? Channel{} : Channel{"", values.low, values.high});
  }
  return ranges;
}

}  // namespace

Inspection inspect(const nlohmann::json& options) {
  Inspection found;
  found.path = options.value("path", "");
  FolderOptions::from_json(options);
  if (!fs::exists(found.path)) fail(ErrorKind::io, "[data] there is no file or folder '{}'", found.path);
  try {
    may_be_idx(found.path) ? inspect_idx(found) : inspect_files(found, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    found.problem = error.what();
  }
  return found;
}

Inspection inspect(const std::string& path, const std::string& key, const std::string& layout) {
  nlohmann::json options{{"path", path}};
  if (!key.empty()) options["key"] = key;
  if (!layout.empty()) options["layout"] = layout;
  return inspect(options);
}

io::Image frame_strip(const Inspection& found, int64_t count) {
  if (found.files.empty()) fail(ErrorKind::data, "[data] '{}' has no clip to draw", found.path);
  const RecordingInfo& file = found.files[0];
  const int64_t frames = std::min(count, file.frames), H = file.height, W = file.width;
  const int64_t zoom = std::max<int64_t>(1, 64 / std::max(H, W)), gap = 2, channels = file.channels == 3 ? 3 : 1;
  const int64_t width = frames * (W * zoom + gap) - gap;
  io::Image image{width, H * zoom, channels,
                  std::vector<uint8_t>(static_cast<size_t>(width * H * zoom * channels), 128)};
  const PixelRanges ranges = shown_ranges(found);
  const auto recording = reopen_in_order(file);
  std::vector<float> pixels(file.frame_elements());
  const auto valid = std::make_unique<bool[]>(pixels.size());  // where all are, none is looked at
  for (int64_t i = 0; i < frames; ++i) {
    const int64_t frame = frames == 1 ? 0 : i * (file.frames - 1) / (frames - 1);
    recording->read_pixels(0, frame, 1, ranges, pixels.data(), file.may_miss ? valid.get() : nullptr);
    for (int64_t p = 0; p < H * zoom * W * zoom * channels; ++p) {
      const int64_t c = p % channels, x = p / channels % (W * zoom), y = p / channels / (W * zoom);
      const double value = pixels[static_cast<size_t>((c * H + y / zoom) * W + x / zoom)];
      image.pixels[static_cast<size_t>((y * width + i * (W * zoom + gap) + x) * channels + c)] =
          static_cast<uint8_t>(std::lround(127.5 * (value + 1)));
    }
  }
  return image;
}

}  // namespace convssm::data
