// Plain loops over elements of any type: the loader's threads run this, and must not start teams of OpenMP threads.
#include "convssm/data/pixels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "convssm/base/error.h"
#include "convssm/data/numbers.h"

namespace convssm::data {
namespace {

struct Place {
  int64_t frame, channel, row, column;
};

[[noreturn]] void fail_pixel(const RecordingInfo& info, int64_t clip, const Place& p, double value,
                             const Channel& channel) {
  const std::string where =
      fmt::format("[folder] '{}' clip {}, frame {}, channel {}{}, row {}, column {}", info.path, clip, p.frame,
                  p.channel, channel.name.empty() ? "" : fmt::format(" ({})", channel.name), p.row, p.column);
  if (!std::isfinite(value))
    fail(ErrorKind::data, "{}: the value is {}, not a number; clean the file, or leave it out{}", where, value,
         std::isnan(value) ? "; data.missing=mask takes NaN for pixels that were not measured" : "");
  fail(ErrorKind::data,
       "{}: the value {} is outside of low {} to high {}; set data.low and data.high, or cut it with "
       "data.clamp=true (generate: --clamp)",
       where, value, channel.low, channel.high);
}

// Rounding may carry the ends of the range a little outside.
constexpr double tolerance = 1e-6;

}  // namespace

void to_pixels(const RecordingInfo& info, int64_t clip, int64_t first_frame, const io::Array& stored,
               const PixelRanges& ranges, float* out, bool* valid) {
  const int64_t C = info.channels, H = info.height, W = info.width;
  if (static_cast<int64_t>(ranges.channels.size()) != C) {
    fail(ErrorKind::usage, "[pixels] '{}' has {} channels, got ranges of {}", info.path, C, ranges.channels.size());
  }
  const bool last = channels_last(info.layout);
  const double most = ranges.open && !ranges.clamp ? kMostOpen : 1;
  const int64_t step_c = last ? 1 : H * W, step_w = last ? C : 1, step_h = W * step_w;
  with_numbers(stored, [&](auto values) {
    const int64_t frames = static_cast<int64_t>(values.size()) / (C * H * W);
    for (int64_t t = 0; t < frames; ++t) {
      for (int64_t c = 0; c < C; ++c) {
        const Channel& channel = ranges.channels[static_cast<size_t>(c)];
        const double low = channel.scaled(channel.low), factor = 2 / (channel.scaled(channel.high) - low);
        for (int64_t h = 0; h < H; ++h) {
          const auto* line = values.data() + t * C * H * W + c * step_c + h * step_h;
          for (int64_t w = 0; w < W; ++w) {
            double value = number(line[w * step_w]);
            const bool measured = !valid || !std::isnan(value);
            if (valid) *valid++ = measured;
            if (!measured) {
              *out++ = kFiller;
              continue;
            }
            if (ranges.clamp && std::isfinite(value)) value = std::clamp(value, channel.low, channel.high);
            const double pixel = (channel.scaled(value) - low) * factor - 1;
            if (!(std::abs(pixel) <= most + tolerance)) {  // or NaN
              fail_pixel(info, clip, {first_frame + t, c, h, w}, value, channel);
            }
            *out++ = static_cast<float>(std::clamp(pixel, -most, most));
          }
        }
      }
    }
  });
}

void Extremes::add(const Extremes& other) {
  const auto mine = static_cast<double>(finite()), theirs = static_cast<double>(other.finite());
  if (theirs > 0) {
    low = mine > 0 ? std::min(low, other.low) : other.low;
    high = mine > 0 ? std::max(high, other.high) : other.high;
    const double apart = other.mean - mean, share = theirs / (mine + theirs);
    mean += apart * share;
    squares += other.squares + apart * apart * mine * share;
  }
  nan += other.nan, infinite += other.infinite, values += other.values;
}

std::vector<Extremes> channel_extremes(const io::Array& frames) {
  const auto C = static_cast<size_t>(frames.shape().at(1));
  const auto pixels = static_cast<size_t>(frames.shape().at(2) * frames.shape().at(3));
  std::vector<Extremes> found(C);
  with_numbers(frames, [&](auto values) {
    for (size_t first = 0; first < values.size(); first += pixels) {
      Extremes plane;
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(values[0])>>) {  // many times faster
        const auto [low, high] = std::ranges::minmax(values.subspan(first, pixels));
        found[first / pixels % C].add({number(low), number(high), 0, 0, pixels});
        continue;
      }
      bool any = false;
      for (const auto& element : values.subspan(first, pixels)) {
        const double value = number(element);
        plane.nan += std::isnan(value);
        plane.infinite += std::isinf(value);
        if (!std::isfinite(value)) continue;
        plane.low = any ? std::min(plane.low, value) : value;
        plane.high = any ? std::max(plane.high, value) : value;
        plane.mean += value;
        any = true;
      }
      plane.values = pixels;
      if (any) plane.mean /= static_cast<double>(plane.finite());
      for (const auto& element : values.subspan(first, pixels)) {
        const double apart = number(element) - plane.mean;
        if (std::isfinite(apart)) plane.squares += apart * apart;
      }
      found[first / pixels % C].add(plane);
    }
  });
  return found;
}

}  // namespace convssm::data
