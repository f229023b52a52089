#include "convssm/data/clip_file.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/array_file.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string find_key(const std::string& path, const std::vector<std::string>& names, const std::string& wanted) {
  if (names == std::vector<std::string>{""}) return "";  // a .npy file has no keys
  if (!wanted.empty()) {
    if (!contains(names, wanted)) io::fail_missing(path, wanted, names);
    return wanted;
  }
  for (const char* usual : {"data", "video"}) {
    if (contains(names, usual)) return usual;
  }
  std::vector<std::string> candidates, shown;
  for (const std::string& name : names) {
    if (name != "actions" && io::ArrayFile(path, name).info().shape.size() >= 3) candidates.push_back(name);
    if (shown.size() < 10) shown.push_back(io::in_quotes(name));
  }
  if (candidates.size() == 1) return candidates[0];
  fail(ErrorKind::data,
       "[folder] '{}': {} of its arrays could be the clips ({}); name one with data.key, "
       "or --truth-key and --forecast-key of compare",
       path, candidates.size(), fmt::join(shown, ", "));
}

void check_actions(const ClipFile& file) {
  const io::ArrayInfo info = io::ArrayFile(file.path, "actions").info();
  const bool whole = info.dtype == io::DType::i64 || info.dtype == io::DType::i32 || info.dtype == io::DType::i16 ||
                     info.dtype == io::DType::i8 || info.dtype == io::DType::u8;
  const bool many = file.layout.letters[0] == 'N';
  const std::vector<int64_t> expected =
      many ? std::vector<int64_t>{file.clips, file.frames} : std::vector<int64_t>{file.frames};
  if (whole && info.shape == expected) return;
  fail(ErrorKind::data, "[folder] '{}': actions must be whole numbers of shape {}, one per frame, found {} {}",
       file.path, io::shape_text(expected), io::dtype_name(info.dtype), io::shape_text(info.shape));
}

}  // namespace

ClipFile describe_clip_file(const std::string& path, const std::string& name, const std::string& key,
                            const std::string& layout, bool actions) {
  const auto names = io::array_names(path);
  if (names.empty()) fail(ErrorKind::data, "[folder] '{}' holds no arrays", path);
  ClipFile file{path, name, find_key(path, names, key), {}, {}};
  file.info = io::ArrayFile(path, file.key).info();
  if (file.info.dtype == io::DType::c64 || file.info.dtype == io::DType::c128) {
    fail(ErrorKind::data, "[folder] '{}': pixels must be real numbers, found {}", path,
         io::dtype_name(file.info.dtype));
  }
  file.layout = choose_layout(path, file.info.shape, layout);
  const auto size = [&file](char letter) { return extent(file.layout, file.info.shape, letter); };
  file.clips = size('N'), file.frames = size('T'), file.channels = size('C');
  file.height = size('H'), file.width = size('W');
  file.has_actions = actions && contains(names, "actions") && file.key != "actions";
  if (file.has_actions) check_actions(file);
  return file;
}

ClipFile describe_animation(const std::string& path, const io::Array& frames) {
  ClipFile file;
  file.path = file.name = path;
  file.info = {frames.dtype(), frames.shape()};
  file.layout = choose_layout(path, frames.shape(), "THWC");
  file.frames = frames.shape()[0], file.height = frames.shape()[1], file.width = frames.shape()[2];
  file.channels = frames.shape()[3];
  return file;
}

std::string frame_text(const ClipFile& file) {
  return fmt::format("{}x{} with {} channel{}", file.height, file.width, file.channels, file.channels == 1 ? "" : "s");
}

void check_fit(const ClipFile& first, const ClipFile& file) {
  if (first.height != file.height || first.width != file.width || first.channels != file.channels) {
    fail(ErrorKind::data, "[folder] all frames must have one size: '{}' has {}, '{}' has {}", first.path,
         frame_text(first), file.path, frame_text(file));
  }
  if (first.has_actions != file.has_actions) {
    fail(ErrorKind::data, "[folder] either all files have actions or none: '{}' has {}, '{}' has {}", first.path,
         first.has_actions ? "some" : "none", file.path, file.has_actions ? "some" : "none");
  }
}

FoundFiles find_clip_files(const std::string& path, const std::vector<std::string>& endings) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorKind::io, "[folder] there is no file or folder '{}'", path);
  if (!fs::is_directory(status)) return {{fs::path(path).filename().string()}, 0};
  FoundFiles found;
  fs::recursive_directory_iterator entries(path, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const fs::path& entry = entries->path();
    const bool hidden = entry.filename().string().starts_with(".");
    if (entries->is_directory()) {
      if (hidden) entries.disable_recursion_pending();
    } else if (!hidden) {
      const bool clips = contains(endings, file_ending(entry));
      if (clips) found.names.push_back(entry.lexically_relative(path).generic_string());
      found.others += clips ? 0 : 1;
    }
  }
  if (error) fail(ErrorKind::io, "[folder] cannot read the folder '{}': {}", path, error.message());
  std::ranges::sort(found.names);
  return found;
}

}  // namespace convssm::data
