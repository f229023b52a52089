// Dimensions are walked over by recursion, which ends in a loop over the last one. A piece is one read: the dimension at which they
// begin is tried for all, and the cheapest is taken.
#include "convssm/io/array_box.h"

#include <cstring>

#include "convssm/base/error.h"

namespace convssm::io {
namespace {

constexpr uint64_t seek_bytes = 1 << 14;  // read in the time that a read needs to begin

template <size_t item>
void copy_line(int64_t count, const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  for (int64_t i = 0; i < count; ++i, from += from_step * int64_t{item}, to += to_step * int64_t{item}) {
    std::memcpy(to, from, item);
  }
}

void copy_line(int64_t count, size_t item, const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  if (from_step == 1 && to_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * item);
  } else if (item == 1) {
    copy_line<1>(count, from, from_step, to, to_step);
  } else if (item == 2) {
    copy_line<2>(count, from, from_step, to, to_step);
  } else if (item == 4) {
    copy_line<4>(count, from, from_step, to, to_step);
  } else if (item == 8) {
    copy_line<8>(count, from, from_step, to, to_step);
  } else {
    copy_line<16>(count, from, from_step, to, to_step);
  }
}

uint64_t offset_of(std::span<const int64_t> place, std::span<const int64_t> steps) {
  int64_t offset = 0;
  for (size_t i = 0; i < place.size(); ++i) offset += place[i] * steps[i];
  return static_cast<uint64_t>(offset);
}

}  // namespace

std::vector<int64_t> steps_of(std::span<const int64_t> shape) {
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i) steps[i - 2] = steps[i - 1] * shape[i - 1];
  return steps;
}

void copy_elements(std::span<const int64_t> shape, size_t item, const std::byte* from,
                   std::span<const int64_t> from_steps, std::byte* to, std::span<const int64_t> to_steps) {
  if (shape.empty()) {
    std::memcpy(to, from, item);
    return;
  }
  if (shape.size() == 1) return copy_line(shape[0], item, from, from_steps[0], to, to_steps[0]);
  const auto bytes = static_cast<int64_t>(item);
  for (int64_t i = 0; i < shape[0]; ++i) {
    copy_elements(shape.subspan(1), item, from + i * from_steps[0] * bytes, from_steps.subspan(1),
                  to + i * to_steps[0] * bytes, to_steps.subspan(1));
  }
}

void check_box(const std::string& path, std::span<const int64_t> shape, std::span<const int64_t> first,
               std::span<const int64_t> count) {
  bool inside = first.size() == shape.size() && count.size() == shape.size();
  for (size_t i = 0; inside && i < shape.size(); ++i) {
    inside = first[i] >= 0 && count[i] >= 1 && count[i] <= shape[i] && first[i] <= shape[i] - count[i];
  }
  if (inside) return;
  fail(ErrorKind::usage, "[ArrayFile] '{}' holds {}, asked for {} from {} on", path, shape_text(shape),
       shape_text(count), shape_text(first));
}

BoxPieces plan_box(std::span<const int64_t> shape, std::span<const int64_t> count, size_t item) {
  const std::vector<int64_t> steps = steps_of(shape);
  BoxPieces best;
  uint64_t pieces = 1;
  for (size_t axis = 0; axis <= shape.size(); ++axis) {
    uint64_t elements = 1;
    for (size_t i = axis; i < shape.size(); ++i) elements += static_cast<uint64_t>((count[i] - 1) * steps[i]);
    const uint64_t each = elements * item + seek_bytes;
    const uint64_t cost = pieces > UINT64_MAX / each ? UINT64_MAX : pieces * each;
    if (axis == 0 || cost < best.cost) best = {axis, pieces, elements, cost};
    if (axis < shape.size()) pieces *= static_cast<uint64_t>(count[axis]);
  }
  return best;
}

Array read_box(const std::string& path, const ArrayInfo& info, std::span<const int64_t> first,
               std::span<const int64_t> count, const ReadElements& read) {
  check_box(path, info.shape, first, count);
  const size_t item = dtype_size(info.dtype);
  const BoxPieces plan = plan_box(info.shape, count, item);
  const std::vector<int64_t> steps = steps_of(info.shape);
  Array box = array_of_file(path, info.dtype, {count.begin(), count.end()}, plan.elements * item);
  const std::vector<int64_t> box_steps = steps_of(count);
  std::vector<std::byte> piece(plan.elements * item);
  std::vector<int64_t> place(first.begin(), first.end());
  std::byte* out = box.bytes().data();
  const size_t piece_bytes = box.byte_count() / plan.pieces;
  for (uint64_t done = 0; done < plan.pieces; ++done, out += piece_bytes) {
    read(offset_of(place, steps), piece);
    copy_elements(count.subspan(plan.axis), item, piece.data(), std::span(steps).subspan(plan.axis), out,
                  std::span(box_steps).subspan(plan.axis));
    for (size_t i = plan.axis; i > 0 && ++place[i - 1] == first[i - 1] + count[i - 1]; --i) place[i - 1] = first[i - 1];
  }
  return box;
}

Array box_of(const Array& whole, std::span<const int64_t> first, std::span<const int64_t> count,
             const std::string& path) {
  check_box(path, whole.shape(), first, count);
  const std::vector<int64_t> steps = steps_of(whole.shape());
  const size_t item = dtype_size(whole.dtype());
  Array box = array_of_file(path, whole.dtype(), {count.begin(), count.end()});
  copy_elements(count, item, whole.bytes().data() + offset_of(first, steps) * item, steps, box.bytes().data(),
                steps_of(count));
  return box;
}

}  // namespace convssm::io
