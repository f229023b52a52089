// The elements of an array of real numbers in their own type, whichever it is.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "convssm/base/error.h"
#include "convssm/io/array.h"

namespace convssm::data {

inline double number(io::Float16 x) { return static_cast<float>(c10::Half(x.bits, c10::Half::from_bits())); }
inline double number(io::BFloat16 x) { return static_cast<float>(c10::BFloat16(x.bits, c10::BFloat16::from_bits())); }
template <typename T>
double number(T x) {
  return static_cast<double>(x);
}

// Calls `action` with the elements, each of which number() turns into a double. Error(usage) for complex ones.
template <typename Action>
void with_numbers(const io::Array& array, const Action& action) {
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

}  // namespace convssm::data
