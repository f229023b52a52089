#include "convssm/data/clip_reader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/tensor.h"
#include "convssm/io/video_writer.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kEndings = {".npy", ".npz", ".gif", ".mp4", ".png"};

// Frames of one size. Whatever else the files hold does not matter here.
void check_same_frames(const ClipFile& first, const ClipFile& file) {
  if (first.height == file.height && first.width == file.width && first.channels == file.channels &&
      first.frames == file.frames) {
    return;
  }
  fail(ErrorKind::data, "all clips must have one size: '{}' has {} frames of {}, '{}' has {} of {}", first.path,
       first.frames, frame_text(first), file.path, file.frames, frame_text(file));
}

bool is_array(const std::string& name) {
  const std::string ending = file_ending(name);
  return ending != ".gif" && ending != ".mp4" && ending != ".png";
}

// `elements` of one clip, in the order of the layout, as [T,C,H,W].
at::Tensor in_order(const at::Tensor& elements, const ClipFile& file) {
  std::string letters = file.layout.letters;
  std::erase(letters, 'N');
  std::vector<int64_t> sizes, order;
  for (const char letter : letters) sizes.push_back(extent(file.layout, file.info.shape, letter));
  for (const char letter : std::string("TCHW")) {
    if (const size_t at = letters.find(letter); at != std::string::npos) order.push_back(static_cast<int64_t>(at));
  }
  const at::Tensor clip = elements.view(sizes).permute(order);
  return (clip.dim() == 3 ? clip.unsqueeze(1) : clip).contiguous();
}

at::Tensor to_f01(const at::Tensor& values, const std::string& path, double low, double high) {
  const at::Tensor x = ((values.to(at::kDouble) - low) / (high - low)).to(at::kFloat);
  const auto [least, most] = at::aminmax(x);
  if (least.item<float>() >= 0 && most.item<float>() <= 1) return x;
  const auto [from, to] = at::aminmax(values.to(at::kDouble));
  fail(ErrorKind::data, "'{}' must have values from {} to {}, found {} to {}; say what they mean with --range LOW,HIGH",
       path, low, high, from.item<double>(), to.item<double>());
}

}  // namespace

ClipReader::ClipReader(const std::string& path, const ClipReaderOptions& options)
    : path_(path), options_(options), names_(find_clip_files(path, kEndings).names) {
  if (names_.empty()) {
    fail(ErrorKind::data, "'{}' holds no clips: expected {} files", path, fmt::join(kEndings, ", "));
  }
  open(0);
  first_ = file_;
  bytes_ = file_.info.dtype == io::DType::u8 && std::isnan(options_.low) && std::isnan(options_.high);
  for (const std::string& name : names_) {
    counts_.push_back(is_array(name) ? describe(name).clips : 1);
    clips_ += counts_.back();
  }
}

bool ClipReader::is_folder() const { return fs::is_directory(path_); }

std::string ClipReader::path_of(const std::string& name) const { return is_folder() ? path_ + "/" + name : path_; }

ClipFile ClipReader::describe(const std::string& name) const {
  return describe_clip_file(path_of(name), name, options_.key, options_.layout, false);
}

void ClipReader::open(size_t index) {
  index_ = index, row_ = 0;
  const std::string& name = names_[index];
  array_.reset();
  if (is_array(name)) {
    file_ = describe(name);
    array_.emplace(file_.path, file_.key);
  } else {
    animation_ = io::read_video(path_of(name));
    file_ = describe_animation(path_of(name), animation_);
  }
  if (options_.key.empty() || !file_.key.empty()) return;
  fail(ErrorKind::data, "'{}' has no array '{}': only .npz files hold arrays by name", file_.path, options_.key);
}

at::Tensor ClipReader::next() {
  if (row_ == file_.clips) open(index_ + 1);
  check_same_frames(first_, file_);
  return read_clip();
}

at::Tensor ClipReader::read_clip() {
  const auto elements = static_cast<uint64_t>(file_.frames) * file_.frame_elements();
  const io::Array part = array_ ? array_->next(elements) : animation_;
  ++row_;
  const bool is_u8 = file_.info.dtype == io::DType::u8;
  const at::Tensor clip = in_order(io::to_tensor(part).view({-1}), file_);
  if (bytes_ && is_u8) return clip;
  const bool is_float = clip.is_floating_point();
  if (!is_float && !is_u8 && (std::isnan(options_.low) || std::isnan(options_.high))) {
    fail(ErrorKind::data, "'{}' holds {} values: say which become 0 and 1 with --range LOW,HIGH", file_.path,
         io::dtype_name(file_.info.dtype));
  }
  const double low = std::isnan(options_.low) ? 0 : options_.low;
  const double high = std::isnan(options_.high) ? (is_u8 ? 255 : 1) : options_.high;
  const at::Tensor frames = to_f01(clip, file_.path, low, high);
  if (!bytes_) return frames;
  fail(ErrorKind::data, "all files must have one type of values: '{}' has u8, '{}' has {}", first_.path, file_.path,
       io::dtype_name(file_.info.dtype));
}

}  // namespace convssm::data
