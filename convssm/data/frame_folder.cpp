// The first picture says how large all are; the others are decoded when they are asked for, and must be as large.
#include "convssm/data/frame_folder.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/natural_order.h"
#include "convssm/data/companion.h"
#include "convssm/data/recording_files.h"
#include "convssm/io/animation.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(".") && is_picture(name) && !entry->is_directory()) names.push_back(name);
  }
  if (error) fail(ErrorKind::io, "[folder] cannot read the folder '{}': {}", folder, error.message());
  std::ranges::sort(names, by_numbers);
  return names;
}

// The same frames are often there in two formats, to look at.
void check_one_format(const std::string& folder, const std::vector<std::string>& names) {
  const auto format = [](const std::string& name) {
    const std::string ending = file_ending(name);
    if (ending == ".jpeg") return std::string(".jpg");
    if (ending == ".tiff") return std::string(".tif");
    return ending == ".pgm" || ending == ".ppm" ? std::string(".pnm") : ending;
  };
  const auto other = std::ranges::find_if(names, [&](const auto& name) { return format(name) != format(names[0]); });
  if (other == names.end()) return;
  fail(ErrorKind::data,
       "[folder] all frames of a clip must have one format: '{}' holds '{}' and '{}'; move those of one kind elsewhere",
       folder, names[0], *other);
}

void check_one_frame(const std::string& path, int64_t frames) {
  if (frames == 1) return;
  fail(ErrorKind::data,
       "[folder] '{}' holds {} pictures, others of its folder one; a folder holds clips or frames of one", path,
       frames);
}

class FrameFolder : public Recording {
 public:
  FrameFolder(RecordingInfo info, std::vector<std::string> names, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(info), std::move(cache)), names_(std::move(names)) {}

 protected:
  io::Array frames(int64_t, int64_t first, int64_t count) override {
    io::Array all = io::array_of_file(info().path, info().dtype, {count, info().height, info().width, info().channels});
    auto out = all.bytes().begin();
    for (int64_t k = 0; k < count; ++k) {
      const std::string path = (fs::path(info().path) / names_[static_cast<size_t>(first + k)]).string();
      const io::Array picture = io::read_animation(path);
      const std::vector<int64_t>& shape = picture.shape();
      if (shape[1] != info().height || shape[2] != info().width || shape[3] != info().channels) {
        fail(ErrorKind::data,
             "[folder] all frames of a clip must have one size: '{}' is {}x{} with {} channels, '{}' has {}", path,
             shape[1], shape[2], shape[3], names_[0], frame_text(info()));
      }
      check_one_frame(path, shape[0]);
      if (picture.dtype() != info().dtype) {
        fail(ErrorKind::data, "[folder] all frames of a clip must have one type: '{}' holds {}, '{}' {}", path,
             io::dtype_name(picture.dtype()), names_[0], io::dtype_name(info().dtype));
      }
      out = std::ranges::copy(picture.bytes(), out).out;
    }
    return all;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Recording> open_frame_folder(const std::string& path, const RecordingOptions& options) {
  std::vector<std::string> names = pictures_in(path);
  if (names.empty()) fail(ErrorKind::data, "[folder] '{}' holds no pictures that could be the frames of a clip", path);
  RecordingInfo info = begin_info(path, "frames", options);
  check_one_format(path, names);
  const std::string first_path = (fs::path(path) / names[0]).string();
  const io::Array first = io::read_animation(first_path);
  check_one_frame(first_path, first.shape()[0]);
  info.dtype = first.dtype();
  info.always_bytes = info.dtype == io::DType::u8;
  info.layout = {"THWC", "a picture for each frame"};
  info.frames = std::ssize(names), info.height = first.shape()[1], info.width = first.shape()[2];
  info.channels = first.shape()[3];
  info.shape = {info.frames, info.height, info.width, info.channels};
  add_companion(info);
  return std::make_unique<FrameFolder>(std::move(info), std::move(names), options.cache);
}

}  // namespace convssm::data
