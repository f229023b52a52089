// Boxes of arrays: from a place on, so many elements along each dimension. How they are read of a file where the whole array lies in
// C order, and copied to another order of dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

// How many elements lie between neighbours along each dimension, in C order.
std::vector<int64_t> steps_of(std::span<const int64_t> shape);

// Copies elements of `item` bytes, as many along each dimension as `shape` says, from one arrangement to another.
void copy_elements(std::span<const int64_t> shape, size_t item, const std::byte* from,
                   std::span<const int64_t> from_steps, std::byte* to, std::span<const int64_t> to_steps);

// Error(usage) that names the file unless the box is inside of an array of this shape, and not empty.
void check_box(const std::string& path, std::span<const int64_t> shape, std::span<const int64_t> first,
               std::span<const int64_t> count);

// A box is read in pieces that lie together, each with what lies between its elements: fewer and larger ones where reading more is
// quicker than seeking.
struct BoxPieces {
  size_t axis = 0;  // a piece holds the box's elements of the dimensions from here on
  uint64_t pieces = 1;
  uint64_t elements = 0;  // of a piece, the ones between included
  uint64_t cost = 0;      // in bytes that could be read in the same time
};
BoxPieces plan_box(std::span<const int64_t> shape, std::span<const int64_t> count, size_t item);

// The box, each piece of which `read` gets: elements `first` .. of the array, as many as there is room for.
using ReadElements = std::function<void(uint64_t first, std::span<std::byte> out)>;
Array read_box(const std::string& path, const ArrayInfo& info, std::span<const int64_t> first,
               std::span<const int64_t> count, const ReadElements& read);

// The box of an array in memory.
Array box_of(const Array& whole, std::span<const int64_t> first, std::span<const int64_t> count,
             const std::string& path);

}  // namespace convssm::io
