// Conversions from the memory layouts that other programs write: byte order and Fortran order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "convssm/io/array.h"

namespace convssm::io {

// Reverses the bytes of every number in place; a complex element is two numbers.
void swap_byte_order(Array& array);

// Reverses every `item` bytes in place, of 1, 2, 4 or 8.
void reverse_items(std::span<std::byte> bytes, size_t item);

// Fills `to`, items of 1, 2, 4, 8 or 16 bytes in C order of `shape`, from where they lie `strides` items apart: a transposition.
void gather_items(std::span<const int64_t> shape, std::span<const int64_t> strides, size_t item, const std::byte* from,
                  std::span<std::byte> to);

// A C-ordered copy of an array whose bytes are in Fortran order (first index fastest).
Array from_fortran_order(const Array& array);

}  // namespace convssm::io
