// NumPy's .npy files: one array of numbers. Reads versions 1.0 to 3.0, both byte orders and both memory orders; the
// result is always in C order and native byte order. Writes version 1.0.
//   Array frames = read_npy("clip.npy");   write_npy("future.npy", frames);
#pragma once

#include <memory>
#include <span>
#include <string>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Error(io) if the file cannot be read, FormatError if it is not an array of numbers.
Array read_npy(const std::string& path);

// The same from any reader; `reader` must hold one .npy file and nothing else.
Array read_npy(Reader& reader);

// Elements `first` to `first + count - 1` of axis 0, so that a large file need not be read whole: [count, ...].
// Error(usage) if they are not all there, Error(data) for Fortran order, where they are scattered over the file.
Array read_npy_rows(const std::string& path, int64_t first, int64_t count);
Array read_npy_rows(std::shared_ptr<const Source> source, int64_t first, int64_t count);

// Type and shape, without reading the data.
ArrayInfo read_npy_info(const std::string& path);
ArrayInfo read_npy_info(Reader& reader);

// Writes the file whole or not at all. Error(usage) for bf16, which NumPy does not have.
void write_npy(const std::string& path, const Array& array);

// The bytes before the data: write them, then the bytes of the array, and the result is a .npy file.
std::string npy_header(DType dtype, std::span<const int64_t> shape);
std::string npy_header(const Array& array);

}  // namespace convssm::io
