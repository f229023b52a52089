// A writer of LevelDB tables and TensorFlow bundles, as small as the tests of their readers need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/crc32c.h"

namespace convssm::io {

using TableEntries = std::vector<std::pair<std::string, std::string>>;

inline std::string fixed(uint64_t value, size_t size) {
  return std::string(reinterpret_cast<const char*>(&value), size);
}

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

inline std::string table_entry(uint64_t shared, const std::string& own, const std::string& value) {
  return varint(shared) + varint(own.size()) + varint(value.size()) + own + value;
}

// The content of a block: entries with a restart point at every `interval`-th.
inline std::string table_block(const TableEntries& entries, size_t interval) {
  std::string out, restarts, last;
  size_t count = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [key, value] = entries[i];
    size_t shared = 0;
    if (i % interval == 0) {
      restarts += fixed(out.size(), 4);
      ++count;
    } else {
      while (shared < std::min(key.size(), last.size()) && key[shared] == last[shared]) ++shared;
    }
    out += table_entry(shared, key.substr(shared), value);
    last = key;
  }
  if (count == 0) restarts = fixed(0, 4), count = 1;
  return out + restarts + fixed(count, 4);
}

// A block with its compression type and checksum.
inline std::string with_trailer(const std::string& block, char type = 0) {
  const std::string bytes = block + type;
  return bytes + fixed(masked_crc32c(bytes), 4);
}

inline std::string table_footer(const std::string& handles, uint64_t magic = 0xdb4775248b80fb57) {
  std::string out = handles;
  out.resize(40, '\0');
  return out + fixed(magic, 8);
}

// A table of these blocks, each whole with its trailer; `keys` are those of the index.
inline std::string join_table(const std::vector<std::string>& blocks, const std::vector<std::string>& keys) {
  std::string out;
  TableEntries index;
  for (size_t i = 0; i < blocks.size(); ++i) {
    index.emplace_back(keys[i], varint(out.size()) + varint(blocks[i].size() - 5));
    out += blocks[i];
  }
  const std::string meta = table_block({}, 1), index_block = table_block(index, 1);
  const uint64_t meta_offset = out.size();
  out += with_trailer(meta);
  const uint64_t index_offset = out.size();
  out += with_trailer(index_block);
  return out +
         table_footer(varint(meta_offset) + varint(meta.size()) + varint(index_offset) + varint(index_block.size()));
}

// A table of entries in ascending order, `per_block` in a block.
inline std::string make_table(const TableEntries& entries, size_t per_block, size_t interval) {
  std::vector<std::string> blocks, keys;
  for (size_t i = 0; i < entries.size(); i += per_block) {
    const size_t end = std::min(entries.size(), i + per_block);
    const TableEntries part(entries.begin() + static_cast<ptrdiff_t>(i), entries.begin() + static_cast<ptrdiff_t>(end));
    blocks.push_back(with_trailer(table_block(part, interval)));
    keys.push_back(part.back().first);
  }
  return join_table(blocks, keys);
}

// Fields of a protobuf message.
inline std::string number_field(uint32_t number, uint64_t value) { return varint(number << 3) + varint(value); }
inline std::string fixed32_field(uint32_t number, uint32_t value) { return varint(number << 3 | 5) + fixed(value, 4); }
inline std::string message_field(uint32_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

inline std::string bundle_header(uint64_t shards = 1, uint64_t endianness = 0, uint64_t min_consumer = 0) {
  return number_field(1, shards) + number_field(2, endianness) +
         message_field(3, number_field(1, 1) + number_field(2, min_consumer));
}

inline std::string shape_message(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t length : shape) out += message_field(2, number_field(1, static_cast<uint64_t>(length)));
  return out;
}

inline std::string bundle_entry(uint64_t dtype, const std::vector<int64_t>& shape, uint64_t offset, uint64_t size,
                                uint32_t masked_crc) {
  return number_field(1, dtype) + message_field(2, shape_message(shape)) + number_field(4, offset) +
         number_field(5, size) + fixed32_field(6, masked_crc);
}

struct BundleBytes {
  std::string index;
  std::string data;
};

// The two files of these arrays, whose names must ascend.
inline BundleBytes make_bundle(const std::vector<NamedArray>& arrays, size_t per_block, size_t interval) {
  TableEntries entries = {{"", bundle_header()}};
  std::string data;
  for (const auto& [name, array] : arrays) {
    const std::string bytes(reinterpret_cast<const char*>(array.bytes().data()), array.byte_count());
    const int number = array.dtype() == DType::f32   ? 1
                       : array.dtype() == DType::f64 ? 2
                       : array.dtype() == DType::i32 ? 3
                                                     : 9;
    entries.emplace_back(name, bundle_entry(static_cast<uint64_t>(number), array.shape(), data.size(), bytes.size(),
                                            masked_crc32c(bytes)));
    data += bytes;
  }
  return {make_table(entries, per_block, interval), data};
}

}  // namespace convssm::io
