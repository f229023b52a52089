// Bytes are 0 to 255 whatever they hold; for other types the values decide, of all files together, so that one dark clip
// does not change what the others mean.
#include "convssm/data/value_range.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/nearest.h"
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
    if (!file.reading.skip_errors && (file.may_miss ? 0 : one.nan) + one.infinite > 0)
      fail(ErrorKind::data, "{}", not_finite_text(file, one));
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

// Throws unless a list has nothing, or `one` element for all, or one for each channel. A guessed layout may be what is wrong.
void check_count(const char* option, size_t found, bool one, const RecordingInfo& info) {
  const auto channels = static_cast<size_t>(info.channels);
  if (found == 0 || found == channels || (one && found == 1)) return;
  const bool guessed = info.kind == "array" && info.reading.layout.empty() && info.shape.size() >= 4;
  const std::string other =
      guessed ? layout_with_channels(info.layout, info.shape, static_cast<int64_t>(found)) : std::string();
  if (!other.empty()) {
    fail(ErrorKind::data,
         "[folder] '{}' is read as {} ({}), whose frames have {} channel{}, but data.{} has {} values; set "
         "data.layout={}",
         info.path, info.layout.letters, info.layout.reason, channels, channels == 1 ? "" : "s", option, found, other);
  }
  fail(ErrorKind::usage, "[folder] {} has {} values, the frames have {} channel{}", option, found, channels,
       channels == 1 ? "" : "s");
}

// One value for all, or one for each channel, or none.
double of_channel(const std::vector<double>& values, size_t c, double otherwise) {
  return values.empty() ? otherwise : values[values.size() == 1 ? 0 : c];
}

void mark_diagnostic(std::vector<Channel>& channels, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto channel = std::ranges::find(channels, name, &Channel::name);
    if (channel == channels.end()) {
      std::vector<std::string> known;
      for (const Channel& other : channels) known.push_back(other.name);
      fail_unknown("[folder] diagnostic: there is no channel", name, known);
    }
    channel->diagnostic = true;
  }
  if (!names.empty() && std::ranges::all_of(channels, &Channel::diagnostic)) {
    fail(ErrorKind::usage, "[folder] diagnostic: a model must see some channel, all are named");
  }
}

}  // namespace

std::vector<Extremes> recording_extremes(const RecordingInfo& info, uint64_t every) {
  std::vector<Extremes> found(static_cast<size_t>(info.channels));
  uint64_t part = 0, bad = 0;
  std::string reason;  // of the first that cannot be read
  const auto leave_out = [&](const Error& error) {
    if (bad++ == 0) reason = error.what();
  };
  for_each_chunk(
      info,
      [&](Recording& recording, int64_t clip, int64_t first, int64_t count) {
        if (part++ % every != 0) return true;
        const auto some = channel_extremes(recording.read(clip, first, count));
        for (size_t c = 0; c < found.size(); ++c) found[c].add(some[c]);
        return true;
      },
      info.reading.skip_errors ? std::function<void(const Error&)>(leave_out) : nullptr);
  if (bad > 0 && found[0].values == 0) fail(ErrorKind::data, "{}", reason);
  if (bad > 0) log_warning("data: the range of values is found without {} parts that cannot be read: {}", bad, reason);
  return found;
}

std::string not_finite_text(const RecordingInfo& info, const Extremes& found) {
  if ((info.may_miss ? 0 : found.nan) + found.infinite == 0) return "";
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

FoundChannels find_channels(const std::vector<RecordingInfo>& files, const FolderOptions& o) {
  const auto C = static_cast<size_t>(files[0].channels);
  if (o.low.empty() != o.high.empty()) fail(ErrorKind::usage, "[folder] low and high are given together or not");
  if (o.mean.empty() != o.std.empty()) fail(ErrorKind::usage, "[folder] mean and std are given together or not");
  if (!o.low.empty() && !o.mean.empty())
    fail(ErrorKind::usage, "[folder] give low and high, or mean and std, not both");
  check_count("low", o.low.size(), true, files[0]);
  check_count("high", o.high.size(), true, files[0]);
  check_count("mean", o.mean.size(), true, files[0]);
  check_count("std", o.std.size(), true, files[0]);
  check_count("log_offset", o.log_offset.size(), true, files[0]);
  check_count("channels", o.channels.size(), false, files[0]);
  FoundChannels found;
  found.channels = files[0].named_channels;
  found.channels.resize(C);
  for (size_t c = 0; c < C; ++c) {
    Channel& channel = found.channels[c];
    if (!o.channels.empty()) channel.name = o.channels[c];
    channel.log_offset = of_channel(o.log_offset, c, 0);
    channel.low = 0, channel.high = 255;
  }
  mark_diagnostic(found.channels, o.diagnostic);
  if (o.low.empty() && o.mean.empty()) {
    const FoundRange range = find_range(files);
    for (Channel& channel : found.channels) channel.low = range.low, channel.high = range.high;
    found.reason = range.reason;
  } else {
    const auto bytes = std::ranges::find_if(files, &RecordingInfo::always_bytes);
    if (bytes != files.end()) {
      fail(ErrorKind::usage, "[folder] '{}' is always read as 0 to 255; leave low and high out", bytes->path);
    }
    for (size_t c = 0; c < C; ++c) {
      const double middle = of_channel(o.mean, c, 0), half = kDeviations * of_channel(o.std, c, 0);
      Channel& channel = found.channels[c];
      const auto unscaled = [&](double x) { return channel.log_offset > 0 ? std::exp(x) - channel.log_offset : x; };
      channel.low = of_channel(o.low, c, unscaled(middle - half));
      channel.high = of_channel(o.high, c, unscaled(middle + half));
    }
    found.reason = o.low.empty() ? fmt::format("mean and {} standard deviations, given", kDeviations) : "given";
  }
  for (const Channel& channel : found.channels) check_scale(channel, ErrorKind::usage, "[folder]");
  return found;
}

}  // namespace convssm::data
