// The header of a .npy file: magic, version and a Python dict literal such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// Only this literal is understood, not Python. Inside io/ only.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

inline constexpr size_t max_npy_dimensions = 64;  // NumPy's own limit

struct NpyHeader {
  ArrayInfo info;
  bool fortran_order = false;
  bool big_endian = false;
};

// Reads up to the first byte of the data. FormatError for everything but arrays of numbers.
NpyHeader read_npy_header(Reader& reader);

// The '<f4' of an array's type; Error(usage) for bf16, which NumPy does not have.
std::string npy_descr(DType dtype);

}  // namespace convssm::io
