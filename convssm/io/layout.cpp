// Another order of axes is undone by walking the result row by row and picking elements with a stride: writes are sequential,
// and no index is divided. The element size is a template parameter, so that a copy is one move instruction.
#include "convssm/io/layout.h"

#include <algorithm>
#include <cstring>

namespace convssm::io {
namespace {

struct Axis {
  int64_t length;
  int64_t stride;  // in items of the bytes that are read
  int64_t index = 0;
};

// Axes of length 1 do not move anything: without them at most 63 are left, whatever the shape.
std::vector<Axis> moving_axes(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) axes.push_back({shape[i], strides[i]});
  }
  if (axes.empty()) axes.push_back({1, 1});
  return axes;
}

// Moves to the next row in C order and returns the position of its first element; all axes but the last are counted.
int64_t advance(std::vector<Axis>& axes, int64_t position) {
  for (size_t i = axes.size() - 1; i-- > 0;) {
    Axis& axis = axes[i];
    position += axis.stride;
    if (++axis.index < axis.length) return position;
    position -= axis.stride * axis.length;
    axis.index = 0;
  }
  return position;
}

template <size_t item>
void gather(std::vector<Axis> axes, const std::byte* from, std::span<std::byte> to) {
  const Axis row = axes.back();
  int64_t start = 0;
  for (std::byte* out = to.data(); out != to.data() + to.size(); start = advance(axes, start)) {
    const std::byte* in = from + start * static_cast<int64_t>(item);
    for (int64_t i = 0; i < row.length; ++i, out += item, in += row.stride * static_cast<int64_t>(item)) {
      std::memcpy(out, in, item);
    }
  }
}

template <size_t item>
void reverse_each(std::span<std::byte> bytes) {
  for (size_t i = 0; i + item <= bytes.size(); i += item) std::reverse(bytes.data() + i, bytes.data() + i + item);
}

}  // namespace

void reverse_items(std::span<std::byte> bytes, size_t item) {
  if (item == 2) reverse_each<2>(bytes);
  if (item == 4) reverse_each<4>(bytes);
  if (item == 8) reverse_each<8>(bytes);
}

void swap_byte_order(Array& array) {
  const bool complex = array.dtype() == DType::c64 || array.dtype() == DType::c128;
  reverse_items(array.bytes(), dtype_size(array.dtype()) / (complex ? 2 : 1));
}

void gather_items(std::span<const int64_t> shape, std::span<const int64_t> strides, size_t item, const std::byte* from,
                  std::span<std::byte> to) {
  auto axes = moving_axes(shape, strides);
  switch (item) {
    case 1:
      gather<1>(std::move(axes), from, to);
      break;
    case 2:
      gather<2>(std::move(axes), from, to);
      break;
    case 4:
      gather<4>(std::move(axes), from, to);
      break;
    case 8:
      gather<8>(std::move(axes), from, to);
      break;
    default:
      gather<16>(std::move(axes), from, to);
  }
}

Array from_fortran_order(const Array& array) {
  const std::vector<int64_t>& shape = array.shape();
  const auto moving = std::ranges::count_if(shape, [](int64_t length) { return length != 1; });
  if (moving < 2 || array.byte_count() == 0) return array;
  std::vector<int64_t> strides;
  for (int64_t stride = 1; const int64_t length : shape) {
    strides.push_back(stride);
    stride *= length;
  }
  Array out(array.dtype(), shape);
  gather_items(shape, strides, dtype_size(array.dtype()), array.bytes().data(), out.bytes());
  return out;
}

}  // namespace convssm::io
