// What the frames of a dataset are: their size and, for each channel, its name and units and which stored values became -1 and 1:
//   v = 2 (f(x) - f(low)) / (f(high) - f(low)) - 1      f(x) = x, or log(x + log_offset)
// Kept with a model, so that forecasts are written in the units of the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/base/error.h"

namespace convssm::data {

struct Channel {
  std::string name = {};  // "" if nobody said
  double low = 0, high = 255;
  std::string units = {};  // "K"; "" if nobody said
  double log_offset =
      0;  // above 0: the logarithm of x + log_offset, for what is mostly small, such as rain; 0: x itself
  bool diagnostic = false;  // forecast and scored, but never seen by the model
  bool operator==(const Channel&) const = default;

  bool same_scale(const Channel& other) const {
    return low == other.low && high == other.high && log_offset == other.log_offset;
  }
  double scaled(double x) const { return log_offset > 0 ? std::log(x + log_offset) : x; }  // f(x)
};

// Error(kind) unless low is less than high, both finite, and the logarithm of both is a number.
void check_scale(const Channel& channel, ErrorKind kind, const char* where);

struct FrameFormat {
  FrameFormat() = default;
  FrameFormat(int64_t channels, int64_t height, int64_t width, double low = 0, double high = 255);  // all of one range

  std::vector<Channel> channels;
  int64_t height = 0, width = 0;
  bool open = false;   // values outside of a range are beyond -1 and 1, not a mistake
  bool clamp = false;  // stored values outside of a range were brought to the nearer end; otherwise there were none

  int64_t depth() const { return static_cast<int64_t>(channels.size()); }
  int64_t pixels() const { return depth() * height * width; }  // values of a frame
  bool is_8_bit() const;  // pictures: every channel is 0 to 255, without name and units
  bool same_size(const FrameFormat& other) const;
  bool same_ranges(const FrameFormat& other) const;  // and scales
  int64_t seen() const;                              // channels that a model sees: those that are not diagnostic
  std::string size_text() const;                     // "64 x 64 with 1 channel"
  std::string range_text() const;                    // "0 to 255", or a range for each channel
  std::string range_options() const;                 // "data.low=0 data.high=255", the options that give these ranges

  // {"height", "width", "channels": [{"low", "high", and what else differs from the default: "name", "units", "log_offset",
  // "diagnostic"}, ...], "clamp" and "open" if true}; if they differ in nothing, unless clamped or open, {"channels": 3, "low", "high", ...}.
  static FrameFormat from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;

 private:
  bool one_range() const;  // and scale
};

// Frames [...,C,H,W] in [-1,1] as values in the units of the data, float64 on the CPU, and back.
at::Tensor values_of(const at::Tensor& frames, const FrameFormat& format);
at::Tensor frames_of_values(const at::Tensor& values,
                            const FrameFormat& format);  // float32; outside of a range: outside of [-1,1]

// Frames [...,C,H,W] in [-1,1] as [...,H,W,C] of the data: bytes of pictures of 8 bits, else float32 in its units.
at::Tensor in_units(const at::Tensor& frames, const FrameFormat& format);

}  // namespace convssm::data
