// The dataset of a user's own files: a window of a clip is read when it is asked for. The index is read once and does not
// change; what is shared between threads is the cache of compressed arrays.
#include "convssm/data/folder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"
#include "convssm/data/codes.h"
#include "convssm/data/file_check.h"
#include "convssm/data/folder_index.h"
#include "convssm/data/order.h"
#include "convssm/data/skipped_files.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

constexpr const char* revisit_key = "revisit";

bool has_revisits(const RecordingInfo& info) {
  if (info.kind != "array" || info.key.empty() || info.key == revisit_key || info.reading.view.stride > 1) return false;
  const auto names = io::array_names(info.path);
  return std::ranges::find(names, revisit_key) != names.end();
}

// All revisits of a file: few numbers, which are read once.
io::Array load_revisits(const RecordingInfo& info) {
  const io::ArrayFile file(info.path, revisit_key);
  const bool several = file.info().shape == std::vector{info.clips, info.frames};
  if (file.info().dtype != io::DType::i64 || !(several || file.info().shape == std::vector{info.frames})) {
    fail(ErrorKind::data, "[folder] '{}': revisit must be i64 [{}] or [{}, {}], found {} {}", info.path, info.frames,
         info.clips, info.frames, io::dtype_name(file.info().dtype), io::shape_text(file.info().shape));
  }
  file.verify();
  return file.read();
}

// Of the same frames as the video, [1,T], counted from the first of them (data/clips.h).
at::Tensor read_revisits(ArrayCache& cache, const RecordingInfo& info, int64_t row, int64_t first, int64_t frames) {
  const auto bytes = static_cast<uint64_t>(info.clips * info.frames) * sizeof(int64_t);
  const io::Array all = cache.whole(info.path, revisit_key, bytes, [&info] { return load_revisits(info); });
  const io::Array stored =
      io::chunk_of(all, static_cast<uint64_t>(row * info.frames + first), static_cast<uint64_t>(frames), info.path);
  at::Tensor revisits = at::empty({1, frames}, at::kLong);
  for (int64_t t = 0; t < frames; ++t) {
    const int64_t earlier = stored.values<int64_t>()[static_cast<size_t>(t)];
    if (earlier < -1 || earlier >= first + t) {
      fail(ErrorKind::data, "[folder] '{}': revisit of frame {} must be an earlier frame or -1, found {}", info.path,
           first + t, earlier);
    }
    revisits.data_ptr<int64_t>()[t] = std::max<int64_t>(earlier - first, -1);
  }
  return revisits;
}

constexpr uint64_t kTries = 64;  // windows of a training, until one can be trained on

class Folder : public Dataset {
 public:
  Folder(const FolderOptions& options, uint64_t seed)
      : options_(options),
        seed_(seed),
        index_(index_folder(options)),
        has_revisits_(has_revisits(index_.files[0]->info())) {
    for (const ClipRef& clip : index_.clips.train)
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<uint64_t>(clip.frames));
  }

  Clips clip(Split split, uint64_t index, int64_t frames) const override {
    const auto window = [&](uint64_t at) {
      const uint64_t number = visited(split, at);
      return part(split, number, start(split, at, ref(split, number).frames - frames), frames);
    };
    // What is reported is of all its clips; in training another window takes the place of one that cannot be read.
    if (split != Split::train) return window(index);
    const uint64_t tries = options_.skip_errors ? std::max(kTries, size(split)) : 1;
    for (uint64_t at = index;; ++at) {
      try {
        Clips clip = window(at);
        check_measured(clip.valid, ref(split, visited(split, at)));
        return clip;
      } catch (const Error& error) {
        if (at - index + 1 >= tries || !is_of_files(error)) throw;
        warn_once(index_.files[ref(split, visited(split, at)).file]->info().path, error.what());
      }
    }
  }

  Clips part(Split split, uint64_t index, int64_t from, int64_t frames) const override {
    if (check_) check_->rethrow();
    const ClipRef& ref = this->ref(split, index);
    Recording& recording = *index_.files[ref.file];
    const RecordingInfo& info = recording.info();
    check_length(ref, info, from, frames);
    const int64_t first = ref.first + from;
    Clips clip;
    if (!index_.codes.none()) {
      clip.codes = read_codes(recording, ref.row, first, frames, index_.codes.count).unsqueeze(0);
    } else {
      clip.video = at::empty({1, frames, info.channels, info.height, info.width}, at::kFloat);
      if (info.may_miss) clip.valid = at::empty(clip.video.sizes(), at::kBool);
      recording.read_pixels(ref.row, first, frames, index_.ranges, clip.video.data_ptr<float>(),
                            info.may_miss ? clip.valid.data_ptr<bool>() : nullptr);
    }
    add_timing(clip, recording, ref.row, first, frames);
    if (info.has_actions) clip.actions = recording.read_actions(ref.row, first, frames).unsqueeze(0);
    if (has_revisits_) clip.revisit = read_revisits(*index_.cache, info, ref.row, first, frames);
    return clip;
  }

  at::Tensor revisits(Split split, uint64_t index, int64_t frames) const override {
    if (!has_revisits_) return {};
    const ClipRef& ref = this->ref(split, index);
    const RecordingInfo& info = index_.files[ref.file]->info();
    check_length(ref, info, 0, frames);
    return read_revisits(*index_.cache, info, ref.row, ref.first, frames)[0];
  }

  uint64_t size(Split split) const override { return index_.clips.of(split).size(); }

  int64_t longest(Split split) const override {
    int64_t frames = any_length;
    for (const ClipRef& clip : index_.clips.of(split)) frames = std::min(frames, clip.frames);
    return frames;
  }

  int64_t length(Split split, uint64_t index) const override { return ref(split, index).frames; }

  FrameFormat format() const override {
    const RecordingInfo& info = index_.files[0]->info();
    FrameFormat format(info.channels, info.height, info.width);
    if (!index_.codes.none())
      return FrameFormat(1, info.height, info.width, 0, static_cast<double>(index_.codes.count - 1));
    format.channels = index_.ranges.channels;
    format.clamp = index_.ranges.clamp, format.open = index_.ranges.open;
    return format;
  }

  const Axes* axes() const override {
    const Axes& axes = index_.files[0]->info().axes;
    return axes.rows.values.empty() && axes.calendar.empty() ? nullptr : &axes;
  }

  ActionFormat actions() const override { return index_.actions; }
  CodeFormat codes() const override { return index_.codes; }

  void check() const override {
    if (index_.looked_through || check_) return;
    std::vector<RecordingInfo> files;
    for (const auto& file : index_.files) files.push_back(file->info());
    if (!index_.codes.none()) return check_codes(files, index_.codes.count);
    check_ = std::make_unique<FileCheck>(files, index_.ranges, options_.skip_errors);
  }

  std::string short_clips(Split split, int64_t frames) const override {
    const auto& clips = index_.clips.of(split);
    const auto is_short = [&](const ClipRef& clip) { return clip.frames < frames; };
    const auto first = std::ranges::find_if(clips, is_short);
    if (first == clips.end()) return "";
    const RecordingInfo& info = index_.files[first->file]->info();
    const auto count = std::ranges::count_if(clips, is_short);
    const std::string part = first->frames < info.length(first->row) ? " for this split" : "";
    return fmt::format("'{}' clip {} has {} frames{}; {} of {} {} clips are too short{}", info.path, first->row,
                       first->frames, part, count, clips.size(), name(split),
                       part.empty() ? fmt::format(", data.min_frames={} leaves them out", frames) : "");
  }

  std::vector<std::string> summary() const override { return index_.notes; }

 private:
  const ClipRef& ref(Split split, uint64_t index) const {
    const auto& clips = index_.clips.of(split);
    if (clips.empty()) fail(ErrorKind::data, "[folder] '{}' holds no {} clips", options_.path, name(split));
    return clips[index % clips.size()];
  }

  static void check_length(const ClipRef& ref, const RecordingInfo& info, int64_t from, int64_t frames) {
    if (frames < 1 || from < 0)
      fail(ErrorKind::usage, "[folder] frames must be positive, got {} from {} on", frames, from);
    if (frames <= ref.frames - from) return;
    fail(ErrorKind::data, "[folder] '{}' clip {} has {} frames{}, {} are asked for", info.path, ref.row, ref.frames,
         ref.frames < info.length(ref.row) ? " for this split" : "", from + frames);
  }

  // A window of which nothing was measured teaches nothing.
  void check_measured(const at::Tensor& valid, const ClipRef& ref) const {
    if (!valid.defined()) return;
    const bool* begin = valid.data_ptr<bool>();
    if (std::find(begin, begin + valid.numel(), true) != begin + valid.numel()) return;
    fail(ErrorKind::data, "[folder] '{}' clip {}: no pixel of a window of {} frames was measured{}",
         index_.files[ref.file]->info().path, ref.row, valid.size(1),
         options_.skip_errors ? "" : "; data.on_error=skip trains on others instead");
  }

  void add_timing(Clips& clip, Recording& recording, int64_t row, int64_t first, int64_t frames) const {
    const auto tensor = [&](const std::vector<double>& values, at::ScalarType type) {
      at::Tensor all = at::empty({1, frames}, at::kDouble);
      std::ranges::copy(values, all.data_ptr<double>());
      return all.to(type);
    };
    const std::vector<double> times = recording.read_times(row, first, frames);
    if (!times.empty()) clip.timing.times = tensor(times, at::kDouble);
    if (!options_.intervals) return;
    const std::vector<double> intervals = recording.read_intervals(row, first, frames);
    if (!intervals.empty()) clip.timing.dt = tensor(intervals, at::kFloat);
  }

  // Random windows are taken of long clips more often than of short ones, so that all frames are trained on equally often.
  uint64_t visited(Split split, uint64_t index) const {
    return split == Split::train && options_.random_crop && !ends_.empty() ? visited_part(index, ends_, seed_) : index;
  }

  // The first frame of the window, of `spare` + 1 possible ones.
  int64_t start(Split split, uint64_t index, int64_t spare) const {
    if (split != Split::train || !options_.random_crop || spare <= 0) return 0;
    return static_cast<int64_t>(Stream(seed_, "folder: window", index).below(static_cast<uint64_t>(spare) + 1));
  }

  void warn_once(const std::string& path, const char* reason) const {
    const std::lock_guard lock(mutex_);
    if (warned_.insert(path).second) log_warning("data: another clip is trained on instead: {}", reason);
  }

  FolderOptions options_;
  uint64_t seed_;
  FolderIndex index_;
  bool has_revisits_;           // of the first file, and so of all
  std::vector<uint64_t> ends_;  // of the training clips, laid one after the other
  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;
  mutable std::unique_ptr<FileCheck> check_;  // once it was asked for
};

void check(const FolderOptions& o) {
  if (o.path.empty()) fail(ErrorKind::usage, "[folder] set path to a folder or file of clips");
  if (!(o.test_fraction >= 0 && o.valid_fraction >= 0 && o.test_fraction + o.valid_fraction < 1)) {
    fail(ErrorKind::usage,
         "[folder] test_fraction and valid_fraction must be at least 0 and together less than 1, got {} and {}",
         o.test_fraction, o.valid_fraction);
  }
  for (const auto& [name, value] : {std::pair("min_frames", o.min_frames),
                                    {"action_count", o.action_count},
                                    {"codebook_size", o.codebook_size},
                                    {"split_gap", o.split_gap}}) {
    if (value < 0) fail(ErrorKind::usage, "[folder] {} must be 0 or positive, got {}", name, value);
  }
  if (o.reading.content == Content::codes && o.reading.view.changes_frames()) {
    fail(ErrorKind::usage, "[folder] codes have no pixels: size and colour are for videos");
  }
  check_layout(o.reading.layout);
  const std::vector<std::string>& names = o.reading.fields.variables;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + static_cast<int64_t>(i), names[i]) !=
        names.begin() + static_cast<int64_t>(i))
      fail(ErrorKind::usage, "[folder] variables names '{}' twice", names[i]);
  }
}

}  // namespace

FolderOptions FolderOptions::from_json(const nlohmann::json& json) {
  FolderOptions o;
  OptionReader read("folder", json);
  const auto choice = [&read](const char* key, const char* no, const char* yes, bool& value) {
    read(key, [&](const std::string& text) {
      if (text != no && text != yes) fail(ErrorKind::usage, "[folder] {} is {} or {}, got '{}'", key, yes, no, text);
      value = text == yes;
    });
  };
  read("path", o.path);
  read("test_fraction", o.test_fraction);
  read("valid_fraction", o.valid_fraction);
  read("key", o.reading.key);
  read("layout", o.reading.layout);
  read("actions_key", o.reading.actions_key);
  read("actions", [&o](const std::string& text) {
    if (text != "auto" && text != "required" && text != "ignore") {
      fail(ErrorKind::usage, "[folder] actions is auto, required or ignore, got '{}'", text);
    }
    o.reading.actions = text != "ignore", o.reading.actions_required = text == "required";
  });
  o.reading.action_reading.read_options(read);
  o.reading.view.read_options(read);
  read("action_count", o.action_count);
  bool masked = true;
  choice("masked_actions", "fail", "allow", masked);
  if (json.contains("masked_actions")) o.masked_actions = masked;
  read("content", [&o](const std::string& text) {
    if (text != "video" && text != "codes")
      fail(ErrorKind::usage, "[folder] content is video or codes, got '{}'", text);
    o.reading.content = text == "codes" ? Content::codes : Content::video;
  });
  read("codebook_size", o.codebook_size);
  read("low", o.low);
  read("high", o.high);
  read("mean", o.mean);
  read("std", o.std);
  read("log_offset", o.log_offset);
  read("diagnostic", o.diagnostic);
  read("variables", o.reading.fields.variables);
  read("from", o.reading.from);
  read("until", o.reading.until);
  read("forcings", o.reading.forcings);
  nlohmann::json ranges = nlohmann::json::object();
  read("forcing_ranges", ranges);
  for (const auto& [name, range] : ranges.items()) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number() ||
        range[0] >= range[1])
      fail(ErrorKind::usage, "[folder] forcing_ranges.{} must be [low, high], got {}", name, range.dump());
    o.reading.fields.forcing_ranges[name] = {range[0].get<double>(), range[1].get<double>()};
  }
  nlohmann::json select = nlohmann::json::object();
  read("select", select);
  for (const auto& [dimension, value] : select.items()) {
    if (!value.is_number())
      fail(ErrorKind::usage, "[folder] select.{} must be a number, got {}", dimension, value.dump());
    o.reading.fields.select[dimension] = value.get<double>();
  }
  read("missing", [&o](const std::string& text) {
    if (text != "auto" && text != "mask" && text != "fail") {
      fail(ErrorKind::usage, "[folder] missing is auto, mask or fail, got '{}'", text);
    }
    o.reading.missing = text == "mask" ? Missing::mask : text == "fail" ? Missing::refuse : Missing::found;
  });
  if (json.contains("missing_value")) {
    o.reading.missing_value = 0;
    read("missing_value", *o.reading.missing_value);
    if (o.reading.missing == Missing::refuse)
      fail(ErrorKind::usage, "[folder] missing: fail refuses what missing_value names; leave one of them out");
  }
  bool split_time = false;
  choice("split", "clips", "time", split_time);
  if (json.contains("split")) o.split_time = split_time;
  read("split_gap", o.split_gap);
  choice("dt", "ignore", "use", o.intervals);
  read("channels", o.channels);
  read("clamp", o.clamp);
  read("min_frames", o.min_frames);
  choice("crop", "start", "random", o.random_crop);
  choice("on_error", "fail", "skip", o.skip_errors);
  o.reading.skip_errors = o.skip_errors;
  read.finish();
  check(o);
  return o;
}

RecordingOptions reading_of_section(const nlohmann::json& section) {
  if (!section.is_object() || section.value("name", nlohmann::json()) != "folder") return {};
  nlohmann::json options = section;
  options.erase("name");
  options.erase("seed");  // of the section, whatever the dataset
  return FolderOptions::from_json(options).reading;
}

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<Folder>(FolderOptions::from_json(options), seed);
}

}  // namespace convssm::data
