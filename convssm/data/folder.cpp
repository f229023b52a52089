// The dataset of a user's own files: a window of a clip is read when it is asked for. The index is read once and does not
// change; what is shared between threads is the cache of compressed arrays.
#include "convssm/data/folder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"
#include "convssm/data/file_check.h"
#include "convssm/data/folder_index.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

constexpr const char* revisit_key = "revisit";

bool has_revisits(const RecordingInfo& info) {
  if (info.kind != "array" || info.key.empty() || info.key == revisit_key) return false;
  const auto names = io::array_names(info.path);
  return std::ranges::find(names, revisit_key) != names.end();
}

// Of the same frames as the video, [1,T], counted from the first of them (data/clips.h).
at::Tensor read_revisits(const RecordingInfo& info, int64_t row, int64_t first, int64_t frames) {
  const io::ArrayFile file(info.path, revisit_key);
  const bool several = file.info().shape == std::vector{info.clips, info.frames};
  if (file.info().dtype != io::DType::i64 || !(several || file.info().shape == std::vector{info.frames})) {
    fail(ErrorKind::data, "[folder] '{}': revisit must be i64 [{}] or [{}, {}], found {} {}", info.path, info.frames,
         info.clips, info.frames, io::dtype_name(file.info().dtype), io::shape_text(file.info().shape));
  }
  const io::Array stored = file.read(static_cast<uint64_t>(row * info.frames + first), static_cast<uint64_t>(frames));
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

class Folder : public Dataset {
 public:
  Folder(const FolderOptions& options, uint64_t seed)
      : options_(options),
        seed_(seed),
        index_(index_folder(options)),
        has_revisits_(has_revisits(index_.files[0]->info())) {}

  Clips clip(Split split, uint64_t index, int64_t frames) const override {
    return part(split, index, start(split, index, ref(split, index).frames - frames), frames);
  }

  Clips part(Split split, uint64_t index, int64_t from, int64_t frames) const override {
    if (check_) check_->rethrow();
    const ClipRef& ref = this->ref(split, index);
    Recording& recording = *index_.files[ref.file];
    const RecordingInfo& info = recording.info();
    check_length(ref, info, from, frames);
    const int64_t first = ref.first + from;
    Clips clip{.video = at::empty({1, frames, info.channels, info.height, info.width}, at::kFloat)};
    recording.read_pixels(ref.row, first, frames, index_.ranges, clip.video.data_ptr<float>());
    if (info.has_actions) clip.actions = recording.read_actions(ref.row, first, frames).unsqueeze(0);
    if (has_revisits_) clip.revisit = read_revisits(info, ref.row, first, frames);
    return clip;
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
    format.channels = index_.ranges.channels;
    format.clamp = index_.ranges.clamp;
    return format;
  }

  ActionFormat actions() const override { return index_.actions; }

  void check() const override {
    if (index_.looked_through || check_) return;
    std::vector<RecordingInfo> files;
    for (const auto& file : index_.files) files.push_back(file->info());
    check_ = std::make_unique<FileCheck>(files, index_.ranges);
  }

  std::string short_clips(Split split, int64_t frames) const override {
    const auto& clips = index_.clips.of(split);
    const auto is_short = [&](const ClipRef& clip) { return clip.frames < frames; };
    const auto first = std::ranges::find_if(clips, is_short);
    if (first == clips.end()) return "";
    const RecordingInfo& info = index_.files[first->file]->info();
    const auto count = std::ranges::count_if(clips, is_short);
    const std::string part = first->frames < info.frames ? " for this split" : "";
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
         ref.frames < info.frames ? " for this split" : "", from + frames);
  }

  // The first frame of the window, of `spare` + 1 possible ones.
  int64_t start(Split split, uint64_t index, int64_t spare) const {
    if (split != Split::train || !options_.random_crop || spare <= 0) return 0;
    return static_cast<int64_t>(Stream(seed_, "folder: window", index).below(static_cast<uint64_t>(spare) + 1));
  }

  FolderOptions options_;
  uint64_t seed_;
  FolderIndex index_;
  bool has_revisits_;                         // of the first file, and so of all
  mutable std::unique_ptr<FileCheck> check_;  // once it was asked for
};

}  // namespace

FolderOptions FolderOptions::from_json(const nlohmann::json& json) {
  FolderOptions o;
  OptionReader read("folder", json);
  read("path", o.path);
  read("test_fraction", o.test_fraction);
  read("valid_fraction", o.valid_fraction);
  read("key", o.key);
  read("actions_key", o.actions_key);
  read("layout", o.layout);
  read("low", o.low);
  read("high", o.high);
  read("channels", o.channels);
  read("clamp", o.clamp);
  read("min_frames", o.min_frames);
  read("crop", [&o](const std::string& text) {
    if (text != "random" && text != "start") fail(ErrorKind::usage, "[folder] crop is random or start, got '{}'", text);
    o.random_crop = text == "random";
  });
  read.finish();
  if (o.path.empty()) fail(ErrorKind::usage, "[folder] set path to a folder or file of clips");
  if (!(o.test_fraction >= 0 && o.valid_fraction >= 0 && o.test_fraction + o.valid_fraction < 1)) {
    fail(ErrorKind::usage,
         "[folder] test_fraction and valid_fraction must be at least 0 and together less than 1, got {} and {}",
         o.test_fraction, o.valid_fraction);
  }
  if (o.min_frames < 0) fail(ErrorKind::usage, "[folder] min_frames must be 0 or positive, got {}", o.min_frames);
  check_layout(o.layout);
  return o;
}

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<Folder>(FolderOptions::from_json(options), seed);
}

}  // namespace convssm::data
