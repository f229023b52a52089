// An array as files hold it: element type, shape and bytes, in C order and in the byte order of this machine.
// No libtorch here; io/tensor.h wraps the bytes in a tensor without a copy.
//   Array a = make_array<float>({2, 3}, {1, 2, 3, 4, 5, 6});   a.values<float>()[4] == 5
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace convssm::io {

enum class DType { bool8, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64, c64, c128 };

inline constexpr std::array all_dtypes = {DType::bool8, DType::u8,  DType::i8,  DType::u16, DType::i16,
                                          DType::u32,   DType::i32, DType::u64, DType::i64, DType::f16,
                                          DType::bf16,  DType::f32, DType::f64, DType::c64, DType::c128};

// Bytes of one element.
size_t dtype_size(DType dtype);

// Real numbers with a point: f16, bf16, f32, f64.
bool is_float(DType dtype);

// "f32", as the enumerator is written.
std::string_view dtype_name(DType dtype);

// C++20 has no 16-bit floats: these carry the bits.
struct Float16 {
  uint16_t bits;
  bool operator==(const Float16&) const = default;
};
struct BFloat16 {
  uint16_t bits;
  bool operator==(const BFloat16&) const = default;
};

// The element type that a C++ type is stored as.
template <typename T>
constexpr DType dtype_of() {
  constexpr bool sign = std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool8;
  else if constexpr (std::is_same_v<T, Float16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::c64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::c128;
  else if constexpr (sizeof(T) == 1)
    return sign ? DType::i8 : DType::u8;
  else if constexpr (sizeof(T) == 2)
    return sign ? DType::i16 : DType::u16;
  else if constexpr (sizeof(T) == 4)
    return sign ? DType::i32 : DType::u32;
  else
    return sign ? DType::i64 : DType::u64;
}

// shape[0] * shape[1] * ... * item_size; nothing if a dimension is negative or the product leaves int64. As in NumPy, a
// zero dimension does not excuse an overflow of the others: strides are computed from them.
std::optional<uint64_t> checked_byte_count(std::span<const int64_t> shape, size_t item_size);

// "[2, 3]"
std::string shape_text(std::span<const int64_t> shape);

struct ArrayInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// Copies share their bytes: fill an array before handing it on. The bytes are aligned to 64 and not cleared at first.
class Array {
 public:
  Array() : Array(DType::f32, {0}) {}
  Array(DType dtype, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  uint64_t element_count() const { return byte_count_ / dtype_size(dtype_); }
  uint64_t byte_count() const { return byte_count_; }

  std::span<std::byte> bytes() { return {storage_.get(), byte_count_}; }
  std::span<const std::byte> bytes() const { return {storage_.get(), byte_count_}; }

  // The owner of the bytes, for views that outlive the array.
  const std::shared_ptr<std::byte[]>& storage() const { return storage_; }

  // The elements; T must be the type that dtype() says.
  template <typename T>
  std::span<const T> values() const {
    check_type(dtype_of<T>());
    return {reinterpret_cast<const T*>(storage_.get()), element_count()};
  }
  template <typename T>
  std::span<T> values() {
    check_type(dtype_of<T>());
    return {reinterpret_cast<T*>(storage_.get()), element_count()};
  }

 private:
  void check_type(DType wanted) const;

  DType dtype_;
  std::vector<int64_t> shape_;
  uint64_t byte_count_;
  std::shared_ptr<std::byte[]> storage_;
};

struct NamedArray {
  std::string name;
  Array array;
};

// An array for content of the file `name`, not filled. Error(data) if it is above the limit of base/file_memory.h, together
// with the bytes that are needed beside it.
Array array_of_file(const std::string& name, DType dtype, std::vector<int64_t> shape, uint64_t beside = 0);

// Throws Error(usage) unless `shape` holds `count` elements.
void check_value_count(std::span<const int64_t> shape, uint64_t count);

template <std::ranges::contiguous_range Values>
Array make_array(std::vector<int64_t> shape, const Values& values) {
  using T = std::ranges::range_value_t<Values>;
  check_value_count(shape, std::ranges::size(values));
  Array array(dtype_of<T>(), std::move(shape));
  std::ranges::copy(values, array.values<T>().begin());
  return array;
}

template <typename T>
Array make_array(std::vector<int64_t> shape, std::initializer_list<T> values) {
  return make_array(std::move(shape), std::span<const T>(values.begin(), values.size()));
}

// Elements first .. first+count-1 in C order, as [count]. Error(data) that the file at `path` has changed since it was
// opened if the array has fewer: whoever asks knows its size from then.
Array chunk_of(const Array& whole, uint64_t first, uint64_t count, const std::string& path);

// Sets each non-zero byte of a bool8 array to 1: any other value of a C++ bool is undefined behaviour.
void normalize_bools(Array& array);

}  // namespace convssm::io
