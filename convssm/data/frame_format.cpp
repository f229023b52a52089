// Sizes and units of frames. The JSON form stands in model files: whatever it accepts, it accepts for ever.
#include "convssm/data/frame_format.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/ops/check.h"

namespace convssm::data {
namespace {

constexpr int64_t kMostChannels = 1 << 16;

// {"channels": 3, "low", "high"}: one range for all.
void read_one_range(OptionReader& read, FrameFormat& format) {
  int64_t count = 0;
  double low = 0, high = 255;
  read("channels", count);
  read("low", low);
  read("high", high);
  if (count < 1 || count > kMostChannels)
    fail(ErrorKind::data, "[frames] channels must be 1 to {}, got {}", kMostChannels, count);
  format.channels.assign(static_cast<size_t>(count), {"", low, high});
}

Channel read_channel(const nlohmann::json& json) {
  Channel channel;
  OptionReader read("frames.channels", json);
  read("name", channel.name);
  read("low", channel.low);
  read("high", channel.high);
  read("units", channel.units);
  read("log_offset", channel.log_offset);
  read("diagnostic", channel.diagnostic);
  read.finish();
  return channel;
}

void check_channels(const char* operation, const at::Tensor& frames, const FrameFormat& format) {
  ops::require(operation, frames.dim() >= 3 && frames.size(-3) == format.depth(), "frames must be [...,{},H,W], got {}",
               format.depth(), ops::shape_text(frames.sizes()));
}

}  // namespace

void check_scale(const Channel& channel, ErrorKind kind, const char* where) {
  const std::string name = channel.name.empty() ? "" : fmt::format(" of {}", channel.name);
  if (!(channel.low < channel.high) || !std::isfinite(channel.high - channel.low)) {
    fail(kind, "{} low{} must be less than high, got {} and {}", where, name, channel.low, channel.high);
  }
  if (!(channel.log_offset >= 0) || !std::isfinite(channel.log_offset)) {
    fail(kind, "{} log_offset{} must be 0 or above, got {}", where, name, channel.log_offset);
  }
  if (channel.log_offset > 0 && !(channel.low + channel.log_offset > 0)) {
    fail(kind, "{} low{} + log_offset must be above 0, for its logarithm; got {} + {}", where, name, channel.low,
         channel.log_offset);
  }
}

FrameFormat::FrameFormat(int64_t count, int64_t rows, int64_t columns, double low, double high)
    : channels(static_cast<size_t>(count), Channel{"", low, high}), height(rows), width(columns) {}

bool FrameFormat::is_8_bit() const {
  return std::ranges::all_of(
      channels, [](const Channel& c) { return c.same_scale(Channel{}) && c.name.empty() && c.units.empty(); });
}

int64_t FrameFormat::seen() const {
  return std::ranges::count_if(channels, [](const Channel& c) { return !c.diagnostic; });
}

bool FrameFormat::same_size(const FrameFormat& other) const {
  return depth() == other.depth() && height == other.height && width == other.width;
}

bool FrameFormat::same_ranges(const FrameFormat& other) const {
  return std::ranges::equal(channels, other.channels,
                            [](const Channel& a, const Channel& b) { return a.same_scale(b); });
}

std::string FrameFormat::size_text() const {
  return fmt::format("{} x {} with {} channel{}", height, width, depth(), depth() == 1 ? "" : "s");
}

bool FrameFormat::one_range() const {
  return std::ranges::all_of(channels, [&](const Channel& c) { return c.same_scale(channels[0]); });
}

std::string FrameFormat::range_options() const {
  std::vector<double> low, high;
  for (const Channel& channel : channels) low.push_back(channel.low), high.push_back(channel.high);
  if (one_range()) low.resize(1), high.resize(1);
  if (low.size() == 1) return fmt::format("data.low={} data.high={}", low[0], high[0]);
  return fmt::format("data.low=[{}] data.high=[{}]", fmt::join(low, ","), fmt::join(high, ","));
}

std::string FrameFormat::range_text() const {
  const auto text = [](const Channel& c) {
    return fmt::format("{} to {}{}{}{}", c.low, c.high, c.units.empty() ? "" : " ", c.units,
                       c.log_offset > 0 ? fmt::format(" (log of x + {})", c.log_offset) : "");
  };
  if (channels.empty()) return "nothing";
  if (one_range()) return text(channels[0]);
  std::string all;
  for (const Channel& channel : channels) {
    all += (all.empty() ? "" : ", ") + (channel.name.empty() ? "" : channel.name + " ") + text(channel);
  }
  return all;
}

FrameFormat FrameFormat::from_json(const nlohmann::json& json) {
  FrameFormat format;
  OptionReader read("frames", json);
  read("height", format.height);
  read("width", format.width);
  read("clamp", format.clamp);
  read("open", format.open);
  if (json.is_object() && json.contains("channels") && json["channels"].is_array()) {
    std::vector<nlohmann::json> list;
    read("channels", list);
    for (const nlohmann::json& channel : list) format.channels.push_back(read_channel(channel));
  } else {
    read_one_range(read, format);
  }
  read.finish();
  for (const Channel& channel : format.channels) check_scale(channel, ErrorKind::data, "[frames]");
  if (format.channels.empty() || format.height < 1 || format.width < 1)
    fail(ErrorKind::data, "[frames] sizes must be positive, got {}", format.size_text());
  return format;
}

nlohmann::json FrameFormat::to_json() const {
  const auto plain = [&](const Channel& c) { return c == Channel{"", channels[0].low, channels[0].high}; };
  if (!clamp && !open && !channels.empty() && std::ranges::all_of(channels, plain)) {
    const Channel& each = channels[0];
    return {{"height", height}, {"width", width}, {"channels", depth()}, {"low", each.low}, {"high", each.high}};
  }
  nlohmann::json list = nlohmann::json::array();
  for (const Channel& channel : channels) {
    list.push_back({{"low", channel.low}, {"high", channel.high}});
    if (!channel.name.empty()) list.back()["name"] = channel.name;
    if (!channel.units.empty()) list.back()["units"] = channel.units;
    if (channel.log_offset > 0) list.back()["log_offset"] = channel.log_offset;
    if (channel.diagnostic) list.back()["diagnostic"] = true;
  }
  nlohmann::json json{{"height", height}, {"width", width}, {"channels", list}};
  if (clamp) json["clamp"] = true;
  if (open) json["open"] = true;
  return json;
}

at::Tensor values_of(const at::Tensor& frames, const FrameFormat& format) {
  check_channels("values_of", frames, format);
  at::Tensor x = frames.detach().cpu().to(at::kDouble) + 1;
  for (int64_t c = 0; c < format.depth(); ++c) {
    const Channel& channel = format.channels[static_cast<size_t>(c)];
    const double low = channel.scaled(channel.low), high = channel.scaled(channel.high);
    at::Tensor plane = x.select(-3, c);
    plane.mul_(0.5 * (high - low)).add_(low);
    if (channel.log_offset > 0) plane.exp_().sub_(channel.log_offset);
  }
  return x;
}

at::Tensor frames_of_values(const at::Tensor& values, const FrameFormat& format) {
  check_channels("frames_of_values", values, format);
  at::Tensor x = values.detach().cpu().to(at::kDouble).clone();
  for (int64_t c = 0; c < format.depth(); ++c) {
    const Channel& channel = format.channels[static_cast<size_t>(c)];
    const double low = channel.scaled(channel.low), high = channel.scaled(channel.high);
    at::Tensor plane = x.select(-3, c);
    if (channel.log_offset > 0) plane.add_(channel.log_offset).log_();
    plane.sub_(low).mul_(2 / (high - low)).sub_(1);
  }
  return x.to(at::kFloat);
}

at::Tensor in_units(const at::Tensor& frames, const FrameFormat& format) {
  check_channels("in_units", frames, format);
  const at::Tensor x = values_of(frames, format);
  const at::Tensor values = format.is_8_bit() ? x.round().clamp(0, 255).to(at::kByte) : x.to(at::kFloat);
  return values.movedim(-3, -1).contiguous();
}

}  // namespace convssm::data
