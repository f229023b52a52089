// The sorted table of LevelDB, in which TensorFlow keeps the index of a checkpoint: blocks of keys and values, each with
// a checksum, an index block that says where they are, and a footer that says where the index is.
// Format: https://github.com/google/leveldb/blob/main/doc/table_format.md. Inside io/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "convssm/io/source.h"

namespace convssm::io {

inline constexpr uint64_t sstable_magic = 0xdb4775248b80fb57;
inline constexpr uint64_t sstable_footer_size = 48;
inline constexpr uint64_t sstable_trailer_size = 5;  // of a block: its compression type and its checksum

// A key and its value, which begins at `offset` of the file; both are gone after the call.
using TableVisitor = std::function<void(const std::string& key, std::span<const std::byte> value, uint64_t offset)>;

// Visits all entries in the order of their keys, which must ascend. FormatError for a checksum that does not match, a
// compressed block, blocks that overlap or leave the file, and keys that expand to many times the size of the file.
void read_sstable(const Source& source, const TableVisitor& visit);

}  // namespace convssm::io
