// Damaged TensorFlow bundles, one kind per line, each with the reason that must be given.
#include <gtest/gtest.h>

#include <string>

#include "convssm/io/tf_bundle.h"
#include "malformed.h"
#include "samples.h"
#include "table_parts.h"

namespace convssm::io {
namespace {

const std::string data = "12345678";

void read_all(const std::shared_ptr<const Source>& source) {
  const TfBundle bundle(source, memory_source("bad.file data", as_bytes(data)));
  for (const std::string& name : bundle.names()) EXPECT_EQ(bundle.read(name).shape(), bundle.info(name).shape);
}

const uint32_t good_crc = masked_crc32c("1234");
const std::string good_entry = bundle_entry(1, {1}, 0, 4, good_crc);

TableEntries good_entries() { return {{"", bundle_header()}, {"net/a", good_entry}, {"net/b", good_entry}}; }

// A table with one block of this content.
Malformed block(const std::string& kind, const std::string& content, const std::string& reason) {
  return {kind, join_table({with_trailer(content)}, {"z"}), reason};
}

Malformed entry(const std::string& kind, const std::string& value, const std::string& reason) {
  return {kind, make_table({{"", bundle_header()}, {"w", value}}, 2, 1), reason};
}

Malformed header(const std::string& kind, const std::string& value, const std::string& reason) {
  return {kind, make_table({{"", value}}, 1, 1), reason};
}

Malformed footer(const std::string& kind, const std::string& handles, const std::string& reason) {
  return {kind, std::string(20, 'x') + table_footer(handles), reason};
}

TEST(TfBundle, PiecesAreRefused) {
  expect_prefixes_refused(make_table(good_entries(), 2, 2), read_all);
  expect_prefixes_refused(make_table(good_entries(), 1, 1), read_all);
}

TEST(TfBundle, DamageIsSurvived) { expect_damage_survived(make_table(good_entries(), 2, 2), read_all); }

TEST(TfBundle, AnyDamageOfABlockIsFound) {
  const std::string good = make_table(good_entries(), 2, 2);
  for (size_t i = 0; i + 48 < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    EXPECT_THROW(read_all(memory_source("damaged", as_bytes(bytes))), FormatError) << "byte " << i;
  }
}

TEST(TfBundle, MalformedTables) {
  const std::string end = fixed(0, 4) + fixed(1, 4);
  const std::string first = table_entry(0, "", bundle_header());
  const std::string twice = with_trailer(table_block(good_entries(), 1));
  TableEntries index = {{"a", varint(0) + varint(twice.size() - 5)}, {"b", varint(0) + varint(twice.size() - 5)}};
  const std::string index_block = table_block(index, 1);
  const std::string overlap = twice + with_trailer(index_block) +
                              table_footer(varint(twice.size()) + varint(index_block.size()) + varint(twice.size()) +
                                           varint(index_block.size()));
  std::string long_keys = first + table_entry(0, std::string(4000, 'k'), good_entry);
  for (int i = 1; i < 256; ++i) long_keys += table_entry(4000, std::string(1, static_cast<char>(i)), "");
  for (const Malformed& file : {
           Malformed{"empty file", "", "at least 48 bytes, this file has 0"},
           Malformed{"47 bytes", std::string(47, 'x'), "at least 48 bytes, this file has 47"},
           Malformed{"no table", std::string(100, 'x'), "expected db4775248b80fb57"},
           Malformed{"a block twice", overlap, "overlaps the one before it"},
           Malformed{"no blocks", join_table({}, {}), "the table is empty"},
           footer("varint of 11 bytes", std::string(11, '\xff'), "more than 64 bits"),
           footer("varint of 65 bits", std::string(9, '\xff') + '\x7f', "more than 64 bits"),
           footer("block outside", varint(1000) + varint(1) + varint(0) + varint(1), "before the footer"),
           footer("block too large", varint(0) + varint(16) + varint(0) + varint(1), "before the footer"),
           footer("block of 2^64-1", varint(0) + varint(UINT64_MAX) + varint(0) + varint(1), "before the footer"),
           footer("offset of 2^64-1", varint(UINT64_MAX) + varint(1) + varint(0) + varint(1), "before the footer"),
           footer("not a block", varint(0) + varint(8) + varint(0) + varint(8), "the checksum of the block"),
           Malformed{"snappy", join_table({with_trailer(first + end, 1)}, {"z"}), "compressed (snappy, type 1)"},
           Malformed{"zstd", join_table({with_trailer(first + end, 2)}, {"z"}), "compressed (unknown type 2)"},
           block("empty block", "", "a block of 0 bytes: the smallest has 8"),
           block("no restart points", first + fixed(0, 8), "0 restart points"),
           block("too many restart points", first + fixed(0, 4) + fixed(1000, 4), "1000 restart points in a block"),
           block("2^32-1 restart points", first + fixed(0, 4) + fixed(UINT32_MAX, 4), "4294967295 restart points"),
           block("restart point inside an entry", first + fixed(1, 4) + fixed(1, 4),
                 "not at the beginning of an entry"),
           block("restart points descend", first + fixed(0, 4) + fixed(0, 4) + fixed(2, 4), "not at the beginning"),
           block("shares with nothing", table_entry(1, "", "") + end,
                 "shares 1 bytes with the key before, which has 0"),
           block("shares too much", first + table_entry(1, "a", good_entry) + end, "shares 1 bytes"),
           block("key over the entries", varint(0) + varint(100) + varint(0) + end, "a key needs 100 bytes"),
           block("key over the limit", varint(0) + varint(4097) + varint(0) + end, "above the limit of 4096"),
           block("key of 2^64-1", varint(0) + varint(UINT64_MAX) + varint(0) + end, "above the limit of 4096"),
           block("value over the entries", varint(0) + varint(0) + varint(UINT64_MAX) + end, "a value needs"),
           block("entry cut", first + "\x80" + end, "an entry needs 1 bytes"),
           block("keys twice", table_block({{"", bundle_header()}, {"a", good_entry}, {"a", good_entry}}, 1),
                 "the keys must ascend"),
           block("keys descend", table_block({{"", bundle_header()}, {"b", good_entry}, {"a", good_entry}}, 1),
                 "key 'a' follows 'b'"),
           block("keys expand", long_keys + end, "16 times the size of the file"),
           block("no header", table_block({{"a", good_entry}}, 1), "must be the first entry"),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(TfBundle, MalformedEntries) {
  const auto with_shape = [](const std::string& shape) {
    return number_field(1, 1) + message_field(2, shape) + number_field(5, 4) + fixed32_field(6, good_crc);
  };
  for (const Malformed& file : {
           header("no shards", "", "in 0 data files"),
           header("two shards", bundle_header(2), "in 2 data files"),
           header("big-endian", bundle_header(1, 1), "big-endian machine"),
           header("newer version", bundle_header(1, 0, 2), "needs a reader of version 2"),
           header("shards as bytes", message_field(1, "x"), "num_shards (protobuf field 1) has the type 2"),
           header("cut tag", "\x80", "the tag of a protobuf field"),
           header("field 0", varint(0) + varint(0), "0 is not a number of a protobuf field"),
           header("a group", varint(1 << 3 | 3), "unknown type 3"),
           header("long message", varint(3 << 3 | 2) + varint(UINT64_MAX),
                  "a protobuf field needs 18446744073709551615"),
           entry("shard 1", good_entry + number_field(3, 1), "'w': it is in shard 1 of 1"),
           entry("unknown rank", with_shape(number_field(3, 1)), "its shape is unknown"),
           entry("shape as a number", number_field(2, 1), "shape (protobuf field 2)"),
           entry("crc as a number", number_field(6, 1), "crc32c (protobuf field 6)"),
           entry("negative length", with_shape(shape_message({-1})), "negative length"),
           entry("two negative lengths", with_shape(shape_message({-1, -1})), "negative length"),
           entry("overflow", with_shape(shape_message({INT64_MAX, 4})), "leaves 64 bits"),
           entry("overflow with a zero", with_shape(shape_message({0, INT64_MAX, 4})), "leaves 64 bits"),
           entry("larger than its size", bundle_entry(1, {1 << 30}, 0, 4, 0),
                 "need 4294967296 bytes, the entry says 4"),
           entry("other size", bundle_entry(2, {1}, 0, 4, 0), "need 8 bytes, the entry says 4"),
           entry("negative size", bundle_entry(1, {1}, 0, UINT64_MAX, 0), "must not be negative"),
           entry("negative offset", bundle_entry(1, {1}, UINT64_MAX, 4, 0), "must not be negative"),
           entry("beyond the data", bundle_entry(1, {1}, 5, 4, 0), "'w' ends at byte 9 according to 'bad.file'"),
           entry("offset of 2^63-1", bundle_entry(1, {1}, INT64_MAX, 4, 0), "ends at byte 9223372036854775811"),
           entry("large and beyond", bundle_entry(1, {1 << 30}, 0, uint64_t{4} << 30, 0), "but the file has 8 bytes"),
           entry("other checksum", bundle_entry(1, {1}, 0, 4, 1), "expected 00000001"),
           entry("no checksum", number_field(1, 1) + number_field(5, 4), "expected 00000000"),
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
