#include "convssm/data/pixels.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"

namespace convssm::data {
namespace {

double number(io::Float16 x) { return static_cast<float>(c10::Half(x.bits, c10::Half::from_bits())); }
double number(io::BFloat16 x) { return static_cast<float>(c10::BFloat16(x.bits, c10::BFloat16::from_bits())); }
template <typename T>
double number(T x) {
  return static_cast<double>(x);
}

// Calls `action` with the elements in their own type.
template <typename Action>
void with_values(const io::Array& array, const Action& action) {
  switch (array.dtype()) {
    case io::DType::bool8:
      return action(array.values<bool>());
    case io::DType::u8:
      return action(array.values<uint8_t>());
    case io::DType::i8:
      return action(array.values<int8_t>());
    case io::DType::u16:
      return action(array.values<uint16_t>());
    case io::DType::i16:
      return action(array.values<int16_t>());
    case io::DType::u32:
      return action(array.values<uint32_t>());
    case io::DType::i32:
      return action(array.values<int32_t>());
    case io::DType::u64:
      return action(array.values<uint64_t>());
    case io::DType::i64:
      return action(array.values<int64_t>());
    case io::DType::f16:
      return action(array.values<io::Float16>());
    case io::DType::bf16:
      return action(array.values<io::BFloat16>());
    case io::DType::f32:
      return action(array.values<float>());
    case io::DType::f64:
      return action(array.values<double>());
    default:
      fail(ErrorKind::usage, "[pixels] real numbers expected, got {}", io::dtype_name(array.dtype()));
  }
}

struct Place {
  int64_t frame, channel, row, column;
};

[[noreturn]] void fail_pixel(const ClipFile& file, int64_t clip, const Place& p, double value,
                             const PixelRange& range) {
  const std::string where = fmt::format("[folder] '{}' clip {}, frame {}, channel {}, row {}, column {}", file.path,
                                        clip, p.frame, p.channel, p.row, p.column);
  if (!std::isfinite(value)) fail(ErrorKind::data, "{}: the value is {}, not a number", where, value);
  fail(ErrorKind::data, "{}: the value {} is outside of low {} to high {}; set low and high, or clamp: true", where,
       value, range.low, range.high);
}

// Rounding may carry the ends of the range a little outside.
constexpr double tolerance = 1e-6;

}  // namespace

void to_pixels(const ClipFile& file, int64_t row, int64_t first_frame, const io::Array& part, const PixelRange& range,
               float* out) {
  const int64_t C = file.channels, H = file.height, W = file.width;
  const bool channels_last = file.layout.letters.back() == 'C';
  const int64_t step_c = channels_last ? 1 : H * W, step_w = channels_last ? C : 1, step_h = W * step_w;
  const double factor = 2 / (range.high - range.low);
  with_values(part, [&](auto values) {
    const int64_t frames = static_cast<int64_t>(values.size()) / (C * H * W);
    for (int64_t t = 0; t < frames; ++t) {
      for (int64_t c = 0; c < C; ++c) {
        for (int64_t h = 0; h < H; ++h) {
          const auto* line = values.data() + t * C * H * W + c * step_c + h * step_h;
          for (int64_t w = 0; w < W; ++w) {
            const double value = number(line[w * step_w]);
            const double pixel = (value - range.low) * factor - 1;
            const bool inside = std::abs(pixel) <= 1 + tolerance;  // false for NaN
            if (!inside && !(range.clamp && std::isfinite(value))) {
              fail_pixel(file, row, {first_frame + t, c, h, w}, value, range);
            }
            *out++ = static_cast<float>(std::clamp(pixel, -1.0, 1.0));
          }
        }
      }
    }
  });
}

void Extremes::add(const Extremes& other) {
  const bool mine = values > nan + infinite, theirs = other.values > other.nan + other.infinite;
  if (theirs) {
    low = mine ? std::min(low, other.low) : other.low;
    high = mine ? std::max(high, other.high) : other.high;
  }
  nan += other.nan, infinite += other.infinite, values += other.values;
}

Extremes extremes(const io::Array& array) {
  Extremes found;
  with_values(array, [&](auto values) {
    bool any = false;
    for (const auto& element : values) {
      const double value = number(element);
      found.nan += std::isnan(value);
      found.infinite += std::isinf(value);
      if (!std::isfinite(value)) continue;
      found.low = any ? std::min(found.low, value) : value;
      found.high = any ? std::max(found.high, value) : value;
      any = true;
    }
    found.values = values.size();
  });
  return found;
}

}  // namespace convssm::data
