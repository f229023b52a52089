// Only the four wire types that are still in use; groups are refused. A message inside is handed out as bytes and read
// by a reader of its own, so the caller decides the depth and a file cannot.
#include "convssm/io/protobuf_wire.h"

namespace convssm::io {

bool WireReader::next(WireField& field) {
  if (cursor_.at_end()) return false;
  const uint64_t tag = cursor_.varint("the tag of a protobuf field");
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) cursor_.fail("{} is not a number of a protobuf field", tag >> 3);
  field = {};
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::varint:
      field.value = cursor_.varint("a protobuf field");
      break;
    case WireType::fixed64:
      field.value = cursor_.number<uint64_t>("a protobuf field");
      break;
    case WireType::fixed32:
      field.value = cursor_.number<uint32_t>("a protobuf field");
      break;
    case WireType::bytes: {
      const uint64_t size = cursor_.varint("the size of a protobuf field");
      field.offset = cursor_.position();
      field.bytes = cursor_.take(size, "a protobuf field");
      break;
    }
    default:
      cursor_.fail("protobuf field {} has the unknown type {}", field.number, tag & 7);
  }
  return true;
}

void WireReader::require(const WireField& field, WireType type, std::string_view what) const {
  if (field.type == type) return;
  cursor_.fail("{} (protobuf field {}) has the type {}, expected {}", what, field.number, static_cast<int>(field.type),
               static_cast<int>(type));
}

}  // namespace convssm::io
