// The wire format of protocol buffers: a message is a sequence of numbered fields, read here one by one without
// recursion. Format: https://protobuf.dev/programming-guides/encoding. Inside io/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "convssm/io/byte_cursor.h"

namespace convssm::io {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;                // of the types varint, fixed64, fixed32
  std::span<const std::byte> bytes;  // of the type bytes: text, or a message
  uint64_t offset = 0;               // of the content in the file
};

class WireReader {
 public:
  // `bytes` begin at `origin` of `file`; both must outlive the reader.
  WireReader(const std::string& file, uint64_t origin, std::span<const std::byte> bytes)
      : cursor_(file, origin, bytes) {}
  // A message that is a field of another one.
  WireReader(const WireReader& outer, const WireField& field)
      : cursor_(outer.cursor_.file(), field.offset, field.bytes) {}

  // The next field; false after the last one. FormatError for the types that no longer exist (groups).
  bool next(WireField& field);

  // FormatError unless the field is of this type; `what` names it.
  void require(const WireField& field, WireType type, std::string_view what) const;

 private:
  ByteCursor cursor_;
};

}  // namespace convssm::io
