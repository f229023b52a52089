#include "convssm/data/folder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"
#include "convssm/data/array_cache.h"
#include "convssm/data/folder_index.h"
#include "convssm/io/tensor.h"

namespace convssm::data {
namespace {

constexpr uint64_t cache_bytes = uint64_t{256} << 20;

class Folder : public Dataset {
 public:
  Folder(const FolderOptions& options, uint64_t seed)
      : options_(options), seed_(seed), index_(index_folder(options)), cache_(cache_bytes) {}

  Clip clip(Split split, uint64_t index, int64_t frames) const override {
    const auto& clips = index_.clips(split);
    if (clips.empty()) fail(ErrorKind::data, "[folder] '{}' holds no {} clips", options_.path, name(split));
    const ClipRef& ref = clips[index % clips.size()];
    const ClipFile& file = index_.files[ref.file];
    check_length(ref, frames);
    const int64_t first = ref.first + start(split, index, ref.frames - frames);
    const auto row_first = static_cast<uint64_t>(ref.row * file.frames + first);
    const auto count = static_cast<uint64_t>(frames);
    Clip clip{at::empty({frames, file.channels, file.height, file.width}, at::kFloat), {}};
    const io::Array part =
        cache_.read(file.path, file.key, row_first * file.frame_elements(), count * file.frame_elements());
    to_pixels(file, ref.row, first, part, index_.range, clip.video.data_ptr<float>());
    if (file.has_actions) {
      clip.actions = io::to_tensor(cache_.read(file.path, "actions", row_first, count)).to(at::kLong);
    }
    return clip;
  }

  uint64_t size(Split split) const override { return index_.clips(split).size(); }

  int64_t longest(Split split) const override {
    int64_t frames = any_length;
    for (const ClipRef& clip : index_.clips(split)) frames = std::min(frames, clip.frames);
    return frames;
  }

  FrameFormat format() const override {
    const ClipFile& file = index_.files[0];
    return {file.channels, file.height, file.width, index_.range.low, index_.range.high};
  }

  int64_t action_count() const override { return index_.action_count; }
  std::vector<std::string> summary() const override { return index_.notes; }

 private:
  void check_length(const ClipRef& ref, int64_t frames) const {
    if (frames < 1) fail(ErrorKind::usage, "[folder] frames must be positive, got {}", frames);
    if (frames <= ref.frames) return;
    fail(ErrorKind::data, "[folder] '{}' clip {} has {} frames{}, {} are asked for", index_.files[ref.file].path,
         ref.row, ref.frames, ref.frames < index_.files[ref.file].frames ? " for this split" : "", frames);
  }

  // The first frame of the window, of `spare` + 1 possible ones.
  int64_t start(Split split, uint64_t index, int64_t spare) const {
    if (split == Split::test || !options_.random_crop || spare == 0) return 0;
    return static_cast<int64_t>(Stream(seed_, "folder: window", index).below(static_cast<uint64_t>(spare) + 1));
  }

  FolderOptions options_;
  uint64_t seed_;
  FolderIndex index_;
  mutable ArrayCache cache_;
};

}  // namespace

FolderOptions FolderOptions::from_json(const nlohmann::json& json) {
  FolderOptions o;
  OptionReader read("folder", json);
  read("path", o.path);
  read("test_fraction", o.test_fraction);
  read("key", o.key);
  read("layout", o.layout);
  read("low", o.low);
  read("high", o.high);
  read("clamp", o.clamp);
  read("crop", [&o](const std::string& text) {
    if (text != "random" && text != "start") fail(ErrorKind::usage, "[folder] crop is random or start, got '{}'", text);
    o.random_crop = text == "random";
  });
  read.finish();
  if (o.path.empty()) fail(ErrorKind::usage, "[folder] set path to a folder or file of clips");
  if (!(o.test_fraction >= 0 && o.test_fraction < 1)) {
    fail(ErrorKind::usage, "[folder] test_fraction must be at least 0 and less than 1, got {}", o.test_fraction);
  }
  check_layout(o.layout);
  return o;
}

std::shared_ptr<const Dataset> make_folder(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<Folder>(FolderOptions::from_json(options), seed);
}

}  // namespace convssm::data
