// A zip archive taken apart, for tests that damage one field of it.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::io {

inline std::string number(uint64_t value, size_t size) {
  return std::string(reinterpret_cast<const char*>(&value), size);
}

// Overwrites the number of `size` bytes at `offset`.
inline void patch(std::string& record, size_t offset, uint64_t value, size_t size) {
  record.replace(offset, size, number(value, size));
}

inline std::string raw_deflate(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One member: its local header (30 bytes, then the name), its stored bytes, its entry in the directory (46 bytes, then
// the name).
struct ZipPart {
  std::string local;
  std::string data;
  std::string central;
};

inline ZipPart zip_part(const std::string& name, const std::string& content, bool deflated, uint64_t offset) {
  const std::string data = deflated ? raw_deflate(content) : content;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::string common = number(20, 2) + number(0, 2) + number(deflated ? 8 : 0, 2) + number(0x00210000, 4) +
                             number(crc, 4) + number(data.size(), 4) + number(content.size(), 4) +
                             number(name.size(), 2) + number(0, 2);
  return {"PK\3\4" + common + name, data,
          "PK\1\2" + number(20, 2) + common + std::string(10, 0) + number(offset, 4) + name};
}

inline std::string end_record(uint64_t count, uint64_t size, uint64_t offset) {
  return "PK\5\6" + number(0, 4) + number(count, 2) + number(count, 2) + number(size, 4) + number(offset, 4) +
         number(0, 2);
}

// The ZIP64 end record and its locator, to stand before the end record.
inline std::string end64_records(uint64_t count, uint64_t size, uint64_t offset) {
  return "PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) + number(count, 8) + number(count, 8) +
         number(size, 8) + number(offset, 8) + "PK\6\7" + number(0, 4) + number(offset + size, 8) + number(1, 4);
}

// The archive of the parts; offsets in the directory are not touched, `end64` adds the ZIP64 records.
inline std::string join(const std::vector<ZipPart>& parts, bool end64 = false) {
  std::string members, directory;
  for (const ZipPart& part : parts) members += part.local + part.data, directory += part.central;
  const std::string wide = end64 ? end64_records(parts.size(), directory.size(), members.size()) : "";
  return members + directory + wide + end_record(parts.size(), directory.size(), members.size());
}

}  // namespace convssm::io
