// The header is compared with the bytes that are there before anything is allocated, then the elements are read as they
// are and their byte order is turned around in place.
#include "convssm/io/idx.h"

#include <array>
#include <optional>

#include "convssm/io/gzip.h"
#include "convssm/io/layout.h"

namespace convssm::io {
namespace {

std::optional<DType> dtype_of_code(int code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

uint32_t read_big_endian(Reader& reader) {
  std::array<std::byte, 4> bytes;
  reader.read(bytes);
  uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint32_t>(byte);
  return value;
}

ArrayInfo read_header(Reader& reader) {
  const uint32_t magic = read_big_endian(reader);
  if (magic >> 16 != 0)
    reader.fail(0, "expected the magic 00 00 of an IDX file, found {:02x} {:02x}", magic >> 24, magic >> 16 & 0xff);
  const auto dtype = dtype_of_code(static_cast<int>(magic >> 8 & 0xff));
  if (!dtype)
    reader.fail(2, "element type {:#04x} is not known; known are 0x08, 0x09 and 0x0b to 0x0e", magic >> 8 & 0xff);
  ArrayInfo info{*dtype, {}};
  for (uint32_t left = magic & 0xff; left > 0; --left) info.shape.push_back(read_big_endian(reader));
  return info;
}

// Nothing is allocated for a header that the file does not fulfil.
void check_size(const Reader& reader, const ArrayInfo& info) {
  const auto expected = checked_byte_count(info.shape, dtype_size(info.dtype));
  const uint64_t found = reader.size() - reader.position();
  if (!expected) reader.fail(reader.position(), "the product of shape {} leaves 64 bits", shape_text(info.shape));
  if (*expected == found) return;
  reader.fail(reader.position(), "shape {} of {} needs {} bytes of data, found {}: the file is {}",
              shape_text(info.shape), dtype_name(info.dtype), *expected, found,
              found < *expected ? "cut short" : "too long");
}

}  // namespace

Array read_idx(const std::string& path) { return read_idx(open_source(path)); }

Array read_idx(std::shared_ptr<const Source> source) {
  const auto reader = is_gzip(*source) ? make_gzip_reader(source) : make_reader(source);
  const ArrayInfo info = read_header(*reader);
  check_size(*reader, info);
  Array array = array_of_file(reader->name(), info.dtype, info.shape);
  reader->read(array.bytes());
  reader->finish();
  swap_byte_order(array);
  return array;
}

}  // namespace convssm::io
