// Unknown fields are skipped, as protocol buffers demand. Values are stored as they come, negative or absurd;
// tf_bundle.cpp judges them, with the tensor's name at hand.
#include "convssm/io/tf_bundle_entry.h"

#include <array>

#include "convssm/io/protobuf_wire.h"

namespace convssm::io {
namespace {

// VersionDef { producer = 1, min_consumer = 2, bad_consumers = 3 }
uint64_t parse_min_consumer(const WireReader& outer, const WireField& message) {
  WireReader reader(outer, message);
  uint64_t min_consumer = 0;
  for (WireField field; reader.next(field);) {
    if (field.number != 2) continue;
    reader.require(field, WireType::varint, "min_consumer");
    min_consumer = field.value;
  }
  return min_consumer;
}

// Dim { size = 1, name = 2 }
int64_t parse_length(const WireReader& outer, const WireField& message) {
  WireReader reader(outer, message);
  int64_t length = 0;
  for (WireField field; reader.next(field);) {
    if (field.number != 1) continue;
    reader.require(field, WireType::varint, "the size of a dimension");
    length = static_cast<int64_t>(field.value);
  }
  return length;
}

// TensorShapeProto { dim = 2, unknown_rank = 3 }
void parse_shape(const WireReader& outer, const WireField& message, BundleEntry& entry) {
  WireReader reader(outer, message);
  for (WireField field; reader.next(field);) {
    if (field.number == 2) {
      reader.require(field, WireType::bytes, "a dimension");
      entry.shape.push_back(parse_length(reader, field));
    } else if (field.number == 3) {
      reader.require(field, WireType::varint, "unknown_rank");
      entry.unknown_rank = field.value != 0;
    }
  }
}

}  // namespace

BundleHeader parse_bundle_header(const std::string& file, uint64_t offset, std::span<const std::byte> bytes) {
  WireReader reader(file, offset, bytes);
  BundleHeader header;
  for (WireField field; reader.next(field);) {
    if (field.number == 1) {
      reader.require(field, WireType::varint, "num_shards");
      header.shards = field.value;
    } else if (field.number == 2) {
      reader.require(field, WireType::varint, "endianness");
      header.endianness = field.value;
    } else if (field.number == 3) {
      reader.require(field, WireType::bytes, "version");
      header.min_consumer = parse_min_consumer(reader, field);
    }
  }
  return header;
}

BundleEntry parse_bundle_entry(const std::string& file, uint64_t offset, std::span<const std::byte> bytes) {
  WireReader reader(file, offset, bytes);
  BundleEntry entry;
  for (WireField field; reader.next(field);) {
    if (field.number == 1) {
      reader.require(field, WireType::varint, "dtype");
      entry.dtype = field.value;
    } else if (field.number == 2) {
      reader.require(field, WireType::bytes, "shape");
      parse_shape(reader, field, entry);
    } else if (field.number == 3) {
      reader.require(field, WireType::varint, "shard_id");
      entry.shard = field.value;
    } else if (field.number == 4) {
      reader.require(field, WireType::varint, "offset");
      entry.offset = static_cast<int64_t>(field.value);
    } else if (field.number == 5) {
      reader.require(field, WireType::varint, "size");
      entry.size = static_cast<int64_t>(field.value);
    } else if (field.number == 6) {
      reader.require(field, WireType::fixed32, "crc32c");
      entry.masked_crc = static_cast<uint32_t>(field.value);
    } else if (field.number == 7) {
      entry.sliced = true;
    }
  }
  return entry;
}

std::optional<DType> dtype_from_tensorflow(uint64_t number) {
  if (number == 1) return DType::f32;
  if (number == 2) return DType::f64;
  if (number == 3) return DType::i32;
  if (number == 9) return DType::i64;
  return std::nullopt;
}

std::string tensorflow_type_name(uint64_t number) {
  constexpr std::array names = {"INVALID",   "FLOAT", "DOUBLE", "INT32", "UINT8",  "INT16",  "INT8",    "STRING",
                                "COMPLEX64", "INT64", "BOOL",   "QINT8", "QUINT8", "QINT32", "BFLOAT16"};
  if (number < names.size()) return fmt::format("DT_{}", names[number]);
  return number == 19 ? "DT_HALF" : fmt::format("DT {}", number);
}

}  // namespace convssm::io
