// Conversions from the memory layouts that other programs write: byte order and Fortran order.
#pragma once

#include <cstddef>
#include <span>

#include "convssm/io/array.h"

namespace convssm::io {

// Reverses the bytes of every number in place; a complex element is two numbers.
void swap_byte_order(Array& array);

// A C-ordered copy of an array whose bytes are in Fortran order (first index fastest).
Array from_fortran_order(const Array& array);

}  // namespace convssm::io
