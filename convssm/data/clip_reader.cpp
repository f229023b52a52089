// A file is opened when its first clip is asked for, so that one is open at a time; only clips are counted before.
#include "convssm/data/clip_reader.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/data/recording_files.h"
#include "convssm/io/tensor.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

RecordingOptions in_order(const ClipReaderOptions& o) {
  return {.key = o.key, .layout = o.layout, .access = Access::in_order, .actions = false};
}

// Frames of one size. Whatever else the files hold does not matter here.
void check_same_frames(const RecordingInfo& first, const RecordingInfo& file) {
  if (first.height == file.height && first.width == file.width && first.channels == file.channels &&
      first.frames == file.frames) {
    return;
  }
  fail(ErrorKind::data, "all clips must have one size: '{}' has {} frames of {}, '{}' has {} of {}", first.path,
       first.frames, frame_text(first), file.path, file.frames, frame_text(file));
}

at::Tensor to_f01(const at::Tensor& values, const std::string& path, double low, double high) {
  const at::Tensor x = ((values.to(at::kDouble) - low) / (high - low)).to(at::kFloat);
  const auto [least, most] = at::aminmax(x);
  if (least.item<float>() >= 0 && most.item<float>() <= 1) return x;
  if (at::isnan(x).any().item<bool>()) fail(ErrorKind::data, "'{}' holds NaN, which cannot be compared", path);
  const auto [from, to] = at::aminmax(values.to(at::kDouble));
  fail(ErrorKind::data, "'{}' must have values from {} to {}, found {} to {}; say what they mean with --range LOW,HIGH",
       path, low, high, from.item<double>(), to.item<double>());
}

}  // namespace

ClipReader::ClipReader(const std::string& path, const ClipReaderOptions& options) : path_(path), options_(options) {
  const FoundFiles found = find_recordings(path, Kinds::all);
  if (found.names.empty()) fail_no_recordings(path, found);
  names_ = found.names;
  open(0);
  first_ = recording_->info();
  bytes_ = first_.dtype == io::DType::u8 && std::isnan(options_.low) && std::isnan(options_.high);
  for (const std::string& name : names_) {
    counts_.push_back(count_clips(recording_path(path_, name), in_order(options_)));
    clips_ += counts_.back();
  }
}

bool ClipReader::is_folder() const { return fs::is_directory(path_); }

void ClipReader::open(size_t index) {
  index_ = index, row_ = 0;
  recording_ = open_recording(recording_path(path_, names_.at(index)), in_order(options_));
  const RecordingInfo& info = recording_->info();
  if (options_.key.empty() || !info.key.empty()) return;
  fail(ErrorKind::data, "'{}' has no array '{}': only .npz files hold arrays by name", info.path, options_.key);
}

at::Tensor ClipReader::next() {
  if (row_ == recording_->info().clips) open(index_ + 1);
  check_same_frames(first_, recording_->info());
  return read_clip();
}

at::Tensor ClipReader::read_clip() {
  const RecordingInfo& info = recording_->info();
  if (info.length(row_) != info.frames) {
    fail(ErrorKind::data, "all clips must have one size: '{}' has clips of {} and of {} frames", info.path, info.frames,
         info.length(row_));
  }
  const at::Tensor clip = io::to_tensor(recording_->read(row_++, 0, info.frames));
  const bool is_u8 = info.dtype == io::DType::u8;
  if (bytes_ && is_u8) return clip;
  const bool is_float = clip.is_floating_point();
  if (!is_float && !is_u8 && (std::isnan(options_.low) || std::isnan(options_.high))) {
    fail(ErrorKind::data, "'{}' holds {} values: say which become 0 and 1 with --range LOW,HIGH", info.path,
         io::dtype_name(info.dtype));
  }
  const double low = std::isnan(options_.low) ? 0 : options_.low;
  const double high = std::isnan(options_.high) ? (is_u8 ? 255 : 1) : options_.high;
  const at::Tensor frames = to_f01(clip, info.path, low, high);
  if (!bytes_) return frames;
  fail(ErrorKind::data, "all files must have one type of values: '{}' has u8, '{}' has {}", first_.path, info.path,
       io::dtype_name(info.dtype));
}

}  // namespace convssm::data
