// By a table of 256 entries, made at compile time. The SSE 4.2 instruction would be faster but is not on every machine,
// and what carries this checksum is small or read once.
#include "convssm/io/crc32c.h"

#include <array>

namespace convssm::io {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t reversed_polynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ reversed_polynomial : value >> 1;
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace convssm::io
