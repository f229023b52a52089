// Single numbers of any type in bytes, in the byte order of this machine: fill values of Zarr arrays, and what its filters compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "convssm/io/array.h"

namespace convssm::io {

// Writes the number into `out`, of the type's size; false if a type of whole numbers cannot hold it. Floats are rounded.
bool store_number(DType dtype, double value, std::span<std::byte> out);

// The same of a whole number in 64 bits, two's complement if it is negative.
bool store_integer(DType dtype, uint64_t bits, bool negative, std::span<std::byte> out);

// The bits of a number as hexadecimal digits, the highest first; false if there are others, or too many.
bool store_hex(std::string_view digits, std::span<std::byte> out);

// Calls `use` with a value of the C++ type of whole numbers, float or double; false for other types.
template <typename Use>
bool with_number_type(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::u8:
      return use(uint8_t{}), true;
    case DType::i8:
      return use(int8_t{}), true;
    case DType::u16:
      return use(uint16_t{}), true;
    case DType::i16:
      return use(int16_t{}), true;
    case DType::u32:
      return use(uint32_t{}), true;
    case DType::i32:
      return use(int32_t{}), true;
    case DType::u64:
      return use(uint64_t{}), true;
    case DType::i64:
      return use(int64_t{}), true;
    case DType::f32:
      return use(float{}), true;
    case DType::f64:
      return use(double{}), true;
    default:
      return false;
  }
}

}  // namespace convssm::io
