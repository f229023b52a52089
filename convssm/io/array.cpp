// Memory is aligned to 64 bytes, a cache line, so that a tensor can use it as it is. Sizes are multiplied with a check
// for overflow: shapes come from files, and a product that wraps around would pass for a small array.
#include "convssm/io/array.h"

#include <fmt/ranges.h>

#include <bit>
#include <new>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"

namespace convssm::io {
namespace {

// The readers and writers of this level copy little-endian files to memory as they are.
static_assert(std::endian::native == std::endian::little, "convssm needs a little-endian machine");

constexpr std::align_val_t alignment{64};

std::shared_ptr<std::byte[]> allocate(uint64_t size) {
  const auto release = [](std::byte* bytes) { ::operator delete(bytes, alignment); };
  try {
    return {static_cast<std::byte*>(::operator new(size, alignment)), release};
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::io, "an array of {} bytes does not fit in memory", size);
  }
}

}  // namespace

size_t dtype_size(DType dtype) {
  constexpr std::array<uint8_t, all_dtypes.size()> sizes = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<size_t>(dtype)];
}

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

std::string_view dtype_name(DType dtype) {
  constexpr std::array<std::string_view, all_dtypes.size()> names = {
      "bool8", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  return names[static_cast<size_t>(dtype)];
}

std::optional<uint64_t> checked_byte_count(std::span<const int64_t> shape, size_t item_size) {
  int64_t product = static_cast<int64_t>(item_size);
  bool empty = false;
  for (const int64_t length : shape) {
    if (length < 0) return std::nullopt;
    if (length == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, length, &product))
      return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(product);
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

Array::Array(DType dtype, std::vector<int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
  const auto size = checked_byte_count(shape_, dtype_size(dtype_));
  if (!size) {
    fail(ErrorKind::usage, "[Array] shape {} of {} has a negative length or more than 2^63 bytes", shape_text(shape_),
         dtype_name(dtype_));
  }
  byte_count_ = *size;
  storage_ = allocate(byte_count_);
}

void Array::check_type(DType wanted) const {
  if (wanted == dtype_) return;
  fail(ErrorKind::usage, "[Array::values] the array holds {}, not {}", dtype_name(dtype_), dtype_name(wanted));
}

Array array_of_file(const std::string& name, DType dtype, std::vector<int64_t> shape, uint64_t beside) {
  const uint64_t bytes = checked_byte_count(shape, dtype_size(dtype)).value_or(UINT64_MAX);
  require_file_memory(name, "an array of it", bytes > UINT64_MAX - beside ? UINT64_MAX : bytes + beside);
  return Array(dtype, std::move(shape));
}

void check_value_count(std::span<const int64_t> shape, uint64_t count) {
  const auto expected = checked_byte_count(shape, 1);
  if (expected == count) return;
  fail(ErrorKind::usage, "[make_array] shape {} does not hold {} values", shape_text(shape), count);
}

Array chunk_of(const Array& whole, uint64_t first, uint64_t count, const std::string& path) {
  const uint64_t all = whole.element_count();
  if (first > all || count > all - first) fail(ErrorKind::data, "'{}' has changed since it was opened", path);
  Array chunk(whole.dtype(), {static_cast<int64_t>(count)});
  const size_t size = dtype_size(whole.dtype());
  std::ranges::copy(whole.bytes().subspan(first * size, count * size), chunk.bytes().begin());
  return chunk;
}

void normalize_bools(Array& array) {
  if (array.dtype() != DType::bool8) return;
  for (std::byte& value : array.bytes()) value = std::byte{value != std::byte{0}};
}

}  // namespace convssm::io
