// Bytes are 0 to 255 whatever they hold; for other types the values decide, of all files together, so that one dark clip
// does not change what the others mean.
#include "convssm/data/value_range.h"

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/data/file_check.h"

namespace convssm::data {
namespace {

// Of all files; the first one that is not made of numbers is an error.
Extremes all_extremes(const std::vector<RecordingInfo>& files) {
  if (files.size() > 100) log_info("[folder] looking for the range of values in {} files", files.size());
  Extremes found;
  for (const RecordingInfo& file : files) {
    Extremes one;
    for (const Extremes& channel : recording_extremes(file)) one.add(channel);
    if (one.nan + one.infinite > 0) fail(ErrorKind::data, "{}", not_finite_text(file, one));
    found.add(one);
  }
  return found;
}

FoundRange find_range(const std::vector<RecordingInfo>& files) {
  const io::DType dtype = files[0].dtype;
  const auto other = std::ranges::find_if(files, [&](const RecordingInfo& file) { return file.dtype != dtype; });
  if (other != files.end()) {
    fail(ErrorKind::data, "[folder] '{}' holds {}, '{}' holds {}; set low and high", files[0].path,
         io::dtype_name(dtype), other->path, io::dtype_name(other->dtype));
  }
  const bool by_type = dtype == io::DType::u8 || dtype == io::DType::bool8;
  return usual_range(dtype, by_type ? Extremes{} : all_extremes(files));
}

// Throws unless a list has nothing, or `one` element for all, or one for each channel.
void check_count(const char* option, size_t found, bool one, size_t channels) {
  if (found == 0 || found == channels || (one && found == 1)) return;
  fail(ErrorKind::usage, "[folder] {} has {} values, the frames have {} channel{}", option, found, channels,
       channels == 1 ? "" : "s");
}

}  // namespace

std::vector<Extremes> recording_extremes(const RecordingInfo& info) {
  std::vector<Extremes> found(static_cast<size_t>(info.channels));
  for_each_chunk(info, [&](Recording& recording, int64_t clip, int64_t first, int64_t count) {
    const auto some = channel_extremes(recording.read(clip, first, count));
    for (size_t c = 0; c < found.size(); ++c) found[c].add(some[c]);
    return true;
  });
  return found;
}

std::string not_finite_text(const RecordingInfo& info, const Extremes& found) {
  if (found.nan + found.infinite == 0) return "";
  try {
    check_pixels(info, {std::vector<Channel>(static_cast<size_t>(info.channels)), true});
  } catch (const Error& error) {
    return fmt::format("{} ({} pixels of the file are NaN and {} infinite)", error.what(), found.nan, found.infinite);
  }
  return fmt::format("[folder] '{}' changes while it is read", info.path);
}

FoundRange usual_range(io::DType dtype, const Extremes& found) {
  if (dtype == io::DType::u8) return {0, 255, "u8"};
  if (dtype == io::DType::bool8) return {0, 1, "bool"};
  const std::string span = fmt::format("the {} values lie in {} to {}", io::dtype_name(dtype), found.low, found.high);
  if (io::is_float(dtype)) {
    if (found.low >= 0 && found.high <= 1) return {0, 1, span};
    if (found.low >= -1 && found.high <= 1) return {-1, 1, span};
  } else if (found.low >= 0 && found.high <= 255) {
    return {0, 255, span};
  }
  fail(ErrorKind::data, "[folder] {}; set low and high to the values that become -1 and 1", span);
}

FoundChannels find_channels(const std::vector<RecordingInfo>& files, const std::vector<double>& low,
                            const std::vector<double>& high, const std::vector<std::string>& names) {
  const auto C = static_cast<size_t>(files[0].channels);
  if (low.empty() != high.empty()) fail(ErrorKind::usage, "[folder] low and high are given together or not");
  check_count("low", low.size(), true, C);
  check_count("high", high.size(), true, C);
  check_count("channels", names.size(), false, C);
  FoundChannels found;
  found.channels.resize(C);
  for (size_t c = 0; c < names.size(); ++c) found.channels[c].name = names[c];
  if (low.empty()) {
    const FoundRange range = find_range(files);
    for (Channel& channel : found.channels) channel.low = range.low, channel.high = range.high;
    found.reason = range.reason;
    return found;
  }
  const auto bytes = std::ranges::find_if(files, &RecordingInfo::always_bytes);
  if (bytes != files.end()) {
    fail(ErrorKind::usage, "[folder] '{}' is always read as 0 to 255; leave low and high out", bytes->path);
  }
  for (size_t c = 0; c < C; ++c) {
    Channel& channel = found.channels[c];
    channel.low = low[low.size() == 1 ? 0 : c], channel.high = high[high.size() == 1 ? 0 : c];
    if (!(channel.low < channel.high) || !std::isfinite(channel.high - channel.low)) {
      fail(ErrorKind::usage, "[folder] low must be less than high, got {} and {} for channel {}", channel.low,
           channel.high, c);
    }
  }
  found.reason = "given";
  return found;
}

}  // namespace convssm::data
