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
  read.finish();
  return channel;
}

}  // namespace

FrameFormat::FrameFormat(int64_t count, int64_t rows, int64_t columns, double low, double high)
    : channels(static_cast<size_t>(count), Channel{"", low, high}), height(rows), width(columns) {}

bool FrameFormat::is_8_bit() const {
  return std::ranges::all_of(channels, [](const Channel& c) { return c.low == 0 && c.high == 255; });
}

bool FrameFormat::same_size(const FrameFormat& other) const {
  return depth() == other.depth() && height == other.height && width == other.width;
}

bool FrameFormat::same_ranges(const FrameFormat& other) const {
  const auto same = [](const Channel& a, const Channel& b) { return a.low == b.low && a.high == b.high; };
  return std::ranges::equal(channels, other.channels, same);
}

std::string FrameFormat::size_text() const {
  return fmt::format("{} x {} with {} channel{}", height, width, depth(), depth() == 1 ? "" : "s");
}

bool FrameFormat::one_range() const {
  const auto like_the_first = [&](const Channel& c) { return c.low == channels[0].low && c.high == channels[0].high; };
  return std::ranges::all_of(channels, like_the_first);
}

std::string FrameFormat::range_options() const {
  std::vector<double> low, high;
  for (const Channel& channel : channels) low.push_back(channel.low), high.push_back(channel.high);
  if (one_range()) low.resize(1), high.resize(1);
  if (low.size() == 1) return fmt::format("data.low={} data.high={}", low[0], high[0]);
  return fmt::format("data.low=[{}] data.high=[{}]", fmt::join(low, ","), fmt::join(high, ","));
}

std::string FrameFormat::range_text() const {
  const auto text = [](const Channel& c) { return fmt::format("{} to {}", c.low, c.high); };
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
  if (json.is_object() && json.contains("channels") && json["channels"].is_array()) {
    std::vector<nlohmann::json> list;
    read("channels", list);
    for (const nlohmann::json& channel : list) format.channels.push_back(read_channel(channel));
  } else {
    read_one_range(read, format);
  }
  read.finish();
  for (const Channel& channel : format.channels) {
    if (!(channel.low < channel.high) || !std::isfinite(channel.high - channel.low)) {
      fail(ErrorKind::data, "[frames] low must be less than high, got {} and {}", channel.low, channel.high);
    }
  }
  if (format.channels.empty() || format.height < 1 || format.width < 1)
    fail(ErrorKind::data, "[frames] sizes must be positive, got {}", format.size_text());
  return format;
}

nlohmann::json FrameFormat::to_json() const {
  const auto unnamed = [](const Channel& c) { return c.name.empty(); };
  if (!clamp && !channels.empty() && one_range() && std::ranges::all_of(channels, unnamed)) {
    const Channel& each = channels[0];
    return {{"height", height}, {"width", width}, {"channels", depth()}, {"low", each.low}, {"high", each.high}};
  }
  nlohmann::json list = nlohmann::json::array();
  for (const Channel& channel : channels) {
    list.push_back({{"low", channel.low}, {"high", channel.high}});
    if (!channel.name.empty()) list.back()["name"] = channel.name;
  }
  nlohmann::json json{{"height", height}, {"width", width}, {"channels", list}};
  if (clamp) json["clamp"] = true;
  return json;
}

at::Tensor in_units(const at::Tensor& frames, const FrameFormat& format) {
  ops::require("in_units", frames.dim() >= 3 && frames.size(-3) == format.depth(),
               "frames must be [...,{},H,W], got {}", format.depth(), ops::shape_text(frames.sizes()));
  at::Tensor middle = at::empty({format.depth(), 1, 1}, at::kDouble), half = at::empty_like(middle);
  for (int64_t c = 0; c < format.depth(); ++c) {
    const Channel& channel = format.channels[static_cast<size_t>(c)];
    middle[c].fill_(channel.low);
    half[c].fill_(0.5 * (channel.high - channel.low));
  }
  const at::Tensor x = (frames.cpu().to(at::kDouble) + 1) * half + middle;
  const at::Tensor values = format.is_8_bit() ? x.round().clamp(0, 255).to(at::kByte) : x.to(at::kFloat);
  return values.movedim(-3, -1).contiguous();
}

}  // namespace convssm::data
