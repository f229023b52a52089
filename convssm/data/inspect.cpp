#include "convssm/data/inspect.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/data/value_range.h"
#include "convssm/io/array_file.h"
#include "convssm/io/idx.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

bool is_idx(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return !fs::is_directory(path) && !name.ends_with(".npy") && !name.ends_with(".npz");
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
    fail(ErrorKind::data, "{}; a file that is not .npy or .npz must be IDX", error.what());
  }
}

void inspect_idx(Inspection& found) {
  const io::Array array = read_idx(found.path);
  found.arrays.push_back(summary_of("", {array.dtype(), array.shape()}));
  found.values = extremes(array);
  found.yaml = fmt::format("data:\n  name: moving-mnist\n  images: {}\n", yaml_text(found.path));
}

// The values that the dataset would map to -1 and 1, or those found if it would ask for them.
std::string range_yaml(const Inspection& found) {
  try {
    usual_range(found.files, found.values);
    return "";
  } catch (const Error&) {
    return fmt::format("  low: {}   # the values found; choose what should become -1 and 1\n  high: {}\n",
                       found.values.low, found.values.high);
  }
}

std::string folder_yaml(const Inspection& found, const std::string& key, const std::string& layout) {
  std::string yaml = fmt::format("data:\n  name: folder\n  path: {}\n", yaml_text(found.path));
  if (!key.empty()) yaml += fmt::format("  key: {}\n", yaml_text(key));
  if (!layout.empty()) yaml += fmt::format("  layout: {}\n", layout);
  return yaml + range_yaml(found);
}

void inspect_files(Inspection& found, const std::string& key, const std::string& layout) {
  const FoundFiles files = find_clip_files(found.path);
  if (files.names.empty()) fail(ErrorKind::data, "[folder] '{}' holds no .npy or .npz files", found.path);
  for (const std::string& name : files.names) {
    const std::string path = fs::is_directory(found.path) ? (fs::path(found.path) / name).string() : found.path;
    if (found.arrays.empty()) {
      for (const auto& array : io::array_names(path)) {
        found.arrays.push_back(summary_of(array, io::ArrayFile(path, array).info()));
      }
    }
    const ClipFile file = describe_clip_file(path, name, key, layout);
    if (!found.files.empty()) check_fit(found.files[0], file);
    found.values.add(file_extremes(file));
    found.clips += static_cast<uint64_t>(file.clips);
    found.shortest = found.files.empty() ? file.frames : std::min(found.shortest, file.frames);
    found.longest = std::max(found.longest, file.frames);
    found.files.push_back(file);
  }
  if (found.values.nan + found.values.infinite > 0) {
    found.problem = "pixels that are NaN or infinite are refused in training; clean the files";
  }
  found.yaml = folder_yaml(found, key, layout);
}

}  // namespace

Inspection inspect(const std::string& path, const std::string& key, const std::string& layout) {
  check_layout(layout);
  if (!fs::exists(path)) fail(ErrorKind::io, "[data] there is no file or folder '{}'", path);
  Inspection found;
  found.path = path;
  try {
    is_idx(path) ? inspect_idx(found) : inspect_files(found, key, layout);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    found.problem = error.what();
  }
  return found;
}

io::Image frame_strip(const Inspection& found, int64_t count) {
  if (found.files.empty()) fail(ErrorKind::data, "[data] '{}' has no clip to draw", found.path);
  const ClipFile& file = found.files[0];
  const int64_t frames = std::min(count, file.frames), H = file.height, W = file.width;
  const int64_t zoom = std::max<int64_t>(1, 64 / std::max(H, W)), gap = 2, channels = file.channels == 3 ? 3 : 1;
  const int64_t width = frames * (W * zoom + gap) - gap;
  io::Image image{width, H * zoom, channels,
                  std::vector<uint8_t>(static_cast<size_t>(width * H * zoom * channels), 128)};
  const bool bytes = file.info.dtype == io::DType::u8 || found.values.high <= found.values.low;
  const PixelRange range{bytes ? 0 : found.values.low, bytes ? 255 : found.values.high, true};
  const io::ArrayFile array(file.path, file.key);
  std::vector<float> pixels(file.frame_elements());
  for (int64_t i = 0; i < frames; ++i) {
    const int64_t frame = frames == 1 ? 0 : i * (file.frames - 1) / (frames - 1);
    const auto first = static_cast<uint64_t>(frame) * file.frame_elements();
    to_pixels(file, 0, frame, array.read(first, file.frame_elements()), range, pixels.data());
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
