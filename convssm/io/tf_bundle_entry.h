// The two protobuf messages of a tensor bundle's index, decoded but not judged. Inside io/ only.
// Format: tensorflow/core/protobuf/tensor_bundle.proto
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

struct BundleHeader {
  uint64_t shards = 0;
  uint64_t endianness = 0;    // 0 is little
  uint64_t min_consumer = 0;  // the oldest version of a reader that understands the bundle
};

struct BundleEntry {
  uint64_t dtype = 0;  // of TensorFlow's enum DataType
  std::vector<int64_t> shape;
  bool unknown_rank = false;
  bool sliced = false;
  uint64_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
};

// `bytes` begin at `offset` of `file`. Fields that are not there are 0; unknown fields are skipped.
BundleHeader parse_bundle_header(const std::string& file, uint64_t offset, std::span<const std::byte> bytes);
BundleEntry parse_bundle_entry(const std::string& file, uint64_t offset, std::span<const std::byte> bytes);

// The element type of a number of TensorFlow's enum DataType, if it is one that can be read.
std::optional<DType> dtype_from_tensorflow(uint64_t number);

// "DT_STRING", or "DT 99".
std::string tensorflow_type_name(uint64_t number);

}  // namespace convssm::io
