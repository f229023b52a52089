// C++20 has no half: its bits are computed from the exponent and the rounded mantissa.
#include "convssm/io/zarr_number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <type_traits>

namespace convssm::io {
namespace {

template <typename T>
void put(T value, std::span<std::byte> out) {
  std::memcpy(out.data(), &value, sizeof value);
}

// To nearest, ties to even; a carry out of the mantissa goes into the exponent, as it should.
uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | std::lrint(std::ldexp(size, 24)));
  const int exponent = std::ilogb(size);
  const long mantissa = std::lrint(std::ldexp(size, 10 - exponent));
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + mantissa));
}

uint16_t bfloat_bits(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

bool store_number(DType dtype, double value, std::span<std::byte> out) {
  switch (dtype) {
    case DType::f16:
      return put(half_bits(value), out), true;
    case DType::bf16:
      return put(bfloat_bits(value), out), true;
    case DType::f32:
      return put(static_cast<float>(value), out), true;
    case DType::f64:
      return put(value, out), true;
    default:
      break;
  }
  if (!(value >= -0x1p63 && value < 0x1p64) || value != std::trunc(value)) return false;
  const uint64_t bits = value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  return store_integer(dtype, bits, value < 0, out);
}

bool store_integer(DType dtype, uint64_t bits, bool negative, std::span<std::byte> out) {
  if (dtype == DType::bool8) return bits <= 1 && (put(static_cast<uint8_t>(bits), out), true);
  bool fits = false;
  with_number_type(dtype, [&](auto number) {
    using T = decltype(number);
    if constexpr (std::is_integral_v<T>) {
      const T value = static_cast<T>(bits);
      fits = negative ? std::is_signed_v<T> && static_cast<int64_t>(value) == static_cast<int64_t>(bits)
                      : value >= 0 && static_cast<uint64_t>(value) == bits;
      put(value, out);
    }
  });
  return fits;
}

bool store_hex(std::string_view digits, std::span<std::byte> out) {
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > 2 * out.size()) return false;
  std::memcpy(out.data(), &bits, out.size());
  return true;
}

}  // namespace convssm::io
