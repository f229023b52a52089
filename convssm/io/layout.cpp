// Fortran order is undone by walking the result row by row and picking elements with a stride: writes are sequential,
// and no index is divided. The element size is a template parameter, so that a copy is one move instruction.
#include "convssm/io/layout.h"

#include <algorithm>
#include <cstring>

namespace convssm::io {
namespace {

struct Axis {
  int64_t length;
  int64_t stride;  // in elements of the Fortran-ordered bytes
  int64_t index = 0;
};

// Axes of length 1 do not move anything: without them at most 63 are left, whatever the shape.
std::vector<Axis> fortran_axes(const std::vector<int64_t>& shape) {
  std::vector<Axis> axes;
  int64_t stride = 1;
  for (const int64_t length : shape) {
    if (length != 1) axes.push_back({length, stride});
    stride *= length;
  }
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
void reverse_items(std::span<std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); i += item) std::reverse(bytes.data() + i, bytes.data() + i + item);
}

}  // namespace

void swap_byte_order(Array& array) {
  const bool complex = array.dtype() == DType::c64 || array.dtype() == DType::c128;
  const size_t item = dtype_size(array.dtype()) / (complex ? 2 : 1);
  if (item == 2) reverse_items<2>(array.bytes());
  if (item == 4) reverse_items<4>(array.bytes());
  if (item == 8) reverse_items<8>(array.bytes());
}

Array from_fortran_order(const Array& array) {
  auto axes = fortran_axes(array.shape());
  if (axes.size() < 2 || array.byte_count() == 0) return array;
  Array out(array.dtype(), array.shape());
  const std::byte* from = array.bytes().data();
  switch (dtype_size(array.dtype())) {
    case 1:
      gather<1>(std::move(axes), from, out.bytes());
      break;
    case 2:
      gather<2>(std::move(axes), from, out.bytes());
      break;
    case 4:
      gather<4>(std::move(axes), from, out.bytes());
      break;
    case 8:
      gather<8>(std::move(axes), from, out.bytes());
      break;
    default:
      gather<16>(std::move(axes), from, out.bytes());
  }
  return out;
}

}  // namespace convssm::io
