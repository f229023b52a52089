// A block is compared with its checksum before any of it is read. Keys share prefixes, so few bytes can expand to many:
// the length of a key is limited, and that of all keys by the size of the file. Blocks must follow each other, so none
// is read twice.
#include "convssm/io/sstable.h"

#include <vector>

#include "convssm/base/file_memory.h"
#include "convssm/io/byte_cursor.h"
#include "convssm/io/crc32c.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr uint64_t max_key = 4096;
constexpr uint64_t max_key_expansion = 16;  // an entry may share its key's beginning with the one before

// Where a block is, without its trailer.
struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Footer {
  Handle meta_index;
  Handle index;
};

struct Block {
  uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

Handle read_handle(ByteCursor& cursor) {
  const uint64_t offset = cursor.varint("the offset of a block");
  return {offset, cursor.varint("the size of a block")};
}

Footer read_footer(const Source& source) {
  if (source.size() < sstable_footer_size) {
    source.fail(0, "a TensorFlow checkpoint index has at least {} bytes, this file has {}", sstable_footer_size,
                source.size());
  }
  const uint64_t begin = source.size() - sstable_footer_size;
  std::vector<std::byte> bytes(sstable_footer_size);
  source.read(begin, bytes);
  const auto magic = load<uint64_t>(&bytes[sstable_footer_size - 8]);
  if (magic != sstable_magic) {
    source.fail(source.size() - 8,
                "the last 8 bytes are {:016x}, expected {:016x}: cut short, or not the .index file "
                "of a TensorFlow checkpoint",
                magic, sstable_magic);
  }
  ByteCursor cursor(source.name(), begin, std::span(bytes).first(sstable_footer_size - 8));
  const Handle meta_index = read_handle(cursor);
  return {meta_index, read_handle(cursor)};
}

// The block without its trailer, after its checksum; everything up to `limit`, the footer, is blocks.
Block read_block(const Source& source, const Handle& handle, uint64_t limit) {
  const auto [offset, size] = handle;
  if (offset > limit || limit - offset < sstable_trailer_size || size > limit - offset - sstable_trailer_size) {
    source.fail(offset, "a block of {} bytes with a trailer of {} does not end before the footer at byte {}", size,
                sstable_trailer_size, limit);
  }
  require_file_memory(source.name(), "a block of it", size);
  Block block{offset, std::vector<std::byte>(size + sstable_trailer_size)};
  source.read(offset, block.bytes);
  const auto expected = load<uint32_t>(&block.bytes[size + 1]);
  const uint32_t found = masked_crc32c(as_text(std::span(block.bytes).first(size + 1)));
  if (found != expected) {
    source.fail(offset, "the checksum of the block of {} bytes is {:08x}, expected {:08x}: the file is damaged", size,
                found, expected);
  }
  const auto type = static_cast<uint8_t>(block.bytes[size]);
  if (type != 0) {
    source.fail(offset + size,
                "the block is compressed ({} {}), only uncompressed ones (type 0) can be read: save the "
                "checkpoint again with tf.train.Saver, which does not compress",
                type == 1 ? "snappy, type" : "unknown type", type);
  }
  block.bytes.resize(size);
  return block;
}

// Walks through the entries of one block. A key is the first `shared` bytes of the one before and some of its own; at
// the restart points nothing is shared.
class BlockWalk {
 public:
  BlockWalk(const Source& source, const Block& block)
      : entries_size_(check_restarts(source, block)),
        restarts_(source.name(), block.offset + entries_size_, std::span(block.bytes).subspan(entries_size_)),
        entries_(source.name(), block.offset, std::span(block.bytes).first(entries_size_)) {
    next_restart_ = restarts_.number<uint32_t>("a restart point");
  }

  // The next entry; false after the last one.
  bool next() {
    if (entries_.at_end()) {
      if (next_restart_ < entries_size_) restarts_.fail("a restart point is not at the beginning of an entry");
      return false;
    }
    const bool restart = entries_.index() == next_restart_;
    const uint64_t shared = entries_.varint("an entry");
    const uint64_t own = entries_.varint("an entry");
    const uint64_t value_size = entries_.varint("an entry");
    if (shared > (restart ? 0 : key_.size())) {
      entries_.fail("a key shares {} bytes with the key before, which has {}", shared, restart ? 0 : key_.size());
    }
    if (own > max_key - shared) entries_.fail("a key of {} + {} bytes, above the limit of {}", shared, own, max_key);
    key_.resize(shared);
    key_ += as_text(entries_.take(own, "a key"));
    offset_ = entries_.position();
    value_ = entries_.take(value_size, "a value");
    if (restart) next_restart_ = restarts_.left() > 4 ? restarts_.number<uint32_t>("a restart point") : entries_size_;
    return true;
  }

  const std::string& key() const { return key_; }
  std::span<const std::byte> value() const { return value_; }
  uint64_t offset() const { return offset_; }

 private:
  // A block ends with the restart points and their count; what is before them is entries.
  static size_t check_restarts(const Source& source, const Block& block) {
    const size_t size = block.bytes.size();
    if (size < 8) source.fail(block.offset, "a block of {} bytes: the smallest has 8", size);
    const auto count = load<uint32_t>(&block.bytes[size - 4]);
    if (count == 0 || count > (size - 4) / 4) {
      source.fail(block.offset + size - 4, "{} restart points in a block of {} bytes", count, size);
    }
    return size - 4 - 4 * size_t{count};
  }

  size_t entries_size_;
  ByteCursor restarts_;
  ByteCursor entries_;
  uint64_t next_restart_ = 0;
  std::string key_;
  std::span<const std::byte> value_;
  uint64_t offset_ = 0;
};

// Checks what holds for all keys of a table together.
class KeyOrder {
 public:
  explicit KeyOrder(const Source& source) : source_(source) {}

  void add(const std::string& key, uint64_t offset) {
    if (!first_ && key <= last_) {
      source_.fail(offset, "key {} follows {}: the keys must ascend", in_quotes(key), in_quotes(last_));
    }
    total_ += key.size();
    if (total_ > max_key_expansion * source_.size()) {
      source_.fail(offset, "the keys have more than {} times the size of the file", max_key_expansion);
    }
    last_ = key;
    first_ = false;
  }

 private:
  const Source& source_;
  std::string last_;
  uint64_t total_ = 0;
  bool first_ = true;
};

}  // namespace

void read_sstable(const Source& source, const TableVisitor& visit) {
  const Footer footer = read_footer(source);
  const uint64_t limit = source.size() - sstable_footer_size;
  read_block(source, footer.meta_index, limit);  // TensorFlow leaves it empty; only its checksum counts
  const Block index = read_block(source, footer.index, limit);
  KeyOrder order(source);
  uint64_t covered = 0;  // blocks follow each other, so no block is read twice
  for (BlockWalk blocks(source, index); blocks.next();) {
    ByteCursor cursor(source.name(), blocks.offset(), blocks.value());
    const Handle handle = read_handle(cursor);
    if (handle.offset < covered) cursor.fail("a block at byte {} overlaps the one before it", handle.offset);
    const Block block = read_block(source, handle, limit);
    covered = handle.offset + handle.size + sstable_trailer_size;
    for (BlockWalk entries(source, block); entries.next();) {
      order.add(entries.key(), entries.offset());
      visit(entries.key(), entries.value(), entries.offset());
    }
  }
}

}  // namespace convssm::io
