// Reads straight into the result and then fixes the byte order in place; only Fortran order needs a second array. Data
// begins at a multiple of 64 bytes, as NumPy writes it, so that a file can be mapped into memory.
#include "convssm/io/npy.h"

#include <fmt/ranges.h>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/io/layout.h"
#include "convssm/io/npy_header.h"

namespace convssm::io {
namespace {

// Compares the header with the bytes that are there, so that nothing is allocated for a false one.
void check_size(const Reader& reader, const ArrayInfo& info) {
  const auto expected = checked_byte_count(info.shape, dtype_size(info.dtype));
  if (!expected) reader.fail(reader.position(), "the product of shape {} leaves 64 bits", shape_text(info.shape));
  const uint64_t found = reader.size() - reader.position();
  if (*expected == found) return;
  reader.fail(reader.position(), "shape {} of {} needs {} bytes of data, found {}: the file is {}",
              shape_text(info.shape), dtype_name(info.dtype), *expected, found,
              found < *expected ? "cut short" : "too long");
}

NpyHeader read_checked_header(Reader& reader) {
  NpyHeader header = read_npy_header(reader);
  check_size(reader, header.info);
  return header;
}

}  // namespace

Array read_npy(const std::string& path) { return read_npy(*make_reader(open_source(path))); }

Array read_npy(Reader& reader) {
  const NpyHeader header = read_checked_header(reader);
  const uint64_t size = reader.size() - reader.position();  // which is that of the array
  Array array = array_of_file(reader.name(), header.info.dtype, header.info.shape, header.fortran_order ? size : 0);
  reader.read(array.bytes());
  reader.finish();
  normalize_bools(array);
  if (header.big_endian) swap_byte_order(array);
  return header.fortran_order ? from_fortran_order(array) : array;
}

Array read_npy_rows(const std::string& path, int64_t first, int64_t count) {
  return read_npy_rows(open_source(path), first, count);
}

Array read_npy_rows(std::shared_ptr<const Source> source, int64_t first, int64_t count) {
  const auto reader = make_reader(source);
  const NpyHeader header = read_checked_header(*reader);
  std::vector<int64_t> shape = header.info.shape;
  if (shape.empty() || first < 0 || count < 0 || first > shape[0] || count > shape[0] - first) {
    fail(ErrorKind::usage, "[read_npy_rows] {} has shape {}: there are no {} rows from {} on", source->name(),
         shape_text(shape), count, first);
  }
  if (header.fortran_order && shape.size() > 1) {
    fail(ErrorKind::data, "{}: is in Fortran order; save numpy.ascontiguousarray of it", source->name());
  }
  const uint64_t row = shape[0] == 0 ? 0 : (reader->size() - reader->position()) / static_cast<uint64_t>(shape[0]);
  shape[0] = count;
  Array array = array_of_file(source->name(), header.info.dtype, std::move(shape));
  source->read(reader->position() + static_cast<uint64_t>(first) * row, array.bytes());
  normalize_bools(array);
  if (header.big_endian) swap_byte_order(array);
  return array;
}

ArrayInfo read_npy_info(const std::string& path) { return read_npy_info(*make_reader(open_source(path))); }

ArrayInfo read_npy_info(Reader& reader) { return read_checked_header(reader).info; }

void write_npy(const std::string& path, const Array& array) {
  const std::string header = npy_header(array);
  AtomicFile file(path);
  file.write(header.data(), header.size());
  file.write(array.bytes().data(), array.byte_count());
  file.commit();
}

std::string npy_header(const Array& array) { return npy_header(array.dtype(), array.shape()); }

std::string npy_header(DType dtype, std::span<const int64_t> shape) {
  if (shape.size() > max_npy_dimensions) {
    fail(ErrorKind::usage, "[npy] NumPy allows {} dimensions, the array has {}", max_npy_dimensions, shape.size());
  }
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", npy_descr(dtype),
                                 fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
  constexpr size_t prefix = 10;  // magic, version, length
  constexpr size_t alignment =
      64;  // of the data, as NumPy writes it; the length always fits the 16 bits of version 1.0
  text.append(alignment - 1 - (prefix + text.size()) % alignment, ' ');
  text += '\n';
  const std::string length = {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + length + text;
}

}  // namespace convssm::io
