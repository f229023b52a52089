#include "convssm/data/value_range.h"

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/data/pixels.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

constexpr uint64_t chunk_elements = uint64_t{1} << 22;

// Of all files; the first one that is not made of numbers is an error.
Extremes all_extremes(const std::vector<ClipFile>& files) {
  if (files.size() > 100) log_info("[folder] looking for the range of values in {} files", files.size());
  Extremes found;
  for (const ClipFile& file : files) {
    const Extremes one = file_extremes(file);
    if (one.nan + one.infinite > 0) {
      fail(ErrorKind::data, "[folder] '{}': {} pixels are NaN and {} infinite; clean the file", file.path, one.nan,
           one.infinite);
    }
    found.add(one);
  }
  return found;
}

bool is_float(io::DType dtype) {
  return dtype == io::DType::f16 || dtype == io::DType::bf16 || dtype == io::DType::f32 || dtype == io::DType::f64;
}

}  // namespace

Extremes file_extremes(const ClipFile& file) {
  const io::ArrayFile array(file.path, file.key);
  if (array.whole_only()) return extremes(array.read());
  uint64_t left = static_cast<uint64_t>(file.clips * file.frames) * file.frame_elements();
  Extremes found;
  for (uint64_t first = 0; left > 0;) {
    const uint64_t count = std::min(left, chunk_elements);
    found.add(extremes(array.read(first, count)));
    first += count;
    left -= count;
  }
  return found;
}

FoundRange usual_range(const std::vector<ClipFile>& files, const Extremes& found) {
  const io::DType dtype = files[0].info.dtype;
  if (dtype == io::DType::u8) return {0, 255, "u8"};
  if (dtype == io::DType::bool8) return {0, 1, "bool"};
  const std::string span = fmt::format("the {} values lie in {} to {}", io::dtype_name(dtype), found.low, found.high);
  if (is_float(dtype)) {
    if (found.low >= 0 && found.high <= 1) return {0, 1, span};
    if (found.low >= -1 && found.high <= 1) return {-1, 1, span};
  } else if (found.low >= 0 && found.high <= 255) {
    return {0, 255, span};
  }
  fail(ErrorKind::data, "[folder] {}; set low and high to the values that become -1 and 1", span);
}

FoundRange find_range(const std::vector<ClipFile>& files, double low, double high) {
  if (std::isnan(low) != std::isnan(high)) fail(ErrorKind::usage, "[folder] low and high are given together or not");
  if (!std::isnan(low)) {
    if (!(low < high) || !std::isfinite(high - low)) {
      fail(ErrorKind::usage, "[folder] low must be less than high, got {} and {}", low, high);
    }
    return {low, high, "given"};
  }
  const io::DType dtype = files[0].info.dtype;
  const auto other = std::ranges::find_if(files, [&](const ClipFile& file) { return file.info.dtype != dtype; });
  if (other != files.end()) {
    fail(ErrorKind::data, "[folder] '{}' holds {}, '{}' holds {}; set low and high", files[0].path,
         io::dtype_name(dtype), other->path, io::dtype_name(other->info.dtype));
  }
  const bool by_type = dtype == io::DType::u8 || dtype == io::DType::bool8;
  return usual_range(files, by_type ? Extremes{} : all_extremes(files));
}

}  // namespace convssm::data
