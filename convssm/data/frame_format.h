// What the frames of a dataset are: their size and, for each channel, its name and which stored values became -1 and 1:
//   v = 2 (x - low) / (high - low) - 1
// Kept with a model, so that forecasts are written in the units of the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace convssm::data {

struct Channel {
  std::string name = {};  // "" if nobody said
  double low = 0, high = 255;
  bool operator==(const Channel&) const = default;
};

struct FrameFormat {
  FrameFormat() = default;
  FrameFormat(int64_t channels, int64_t height, int64_t width, double low = 0, double high = 255);  // all of one range

  std::vector<Channel> channels;
  int64_t height = 0, width = 0;
  bool clamp = false;  // stored values outside of a range were brought to the nearer end; otherwise there were none

  int64_t depth() const { return static_cast<int64_t>(channels.size()); }
  int64_t pixels() const { return depth() * height * width; }  // values of a frame
  bool is_8_bit() const;                                       // every channel is 0 to 255
  bool same_size(const FrameFormat& other) const;
  bool same_ranges(const FrameFormat& other) const;
  std::string size_text() const;      // "64 x 64 with 1 channel"
  std::string range_text() const;     // "0 to 255", or a range for each channel
  std::string range_options() const;  // "data.low=0 data.high=255", the options that give these ranges

  // {"height", "width", "channels": [{"name", "low", "high"}, ...], "clamp" if true}; without names and with one range for
  // all channels, unless clamped, {"channels": 3, "low", "high", ...}.
  static FrameFormat from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;

 private:
  bool one_range() const;
};

// Frames [...,C,H,W] in [-1,1] as [...,H,W,C] of the data: bytes if every channel is 0 to 255, else float32 in its units.
at::Tensor in_units(const at::Tensor& frames, const FrameFormat& format);

}  // namespace convssm::data
