// IDX files, plain and compressed: the bytes are laid out here by hand, and compressed by zlib's own gzip writer.
#include "convssm/io/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <string>

#include "../base/scratch_folder.h"
#include "malformed.h"

namespace convssm::io {
namespace {

using namespace std::string_literals;

void read_all(const std::shared_ptr<const Source>& source) { read_idx(source); }

Array read(const std::string& bytes) { return read_idx(memory_source("test.idx", as_bytes(bytes))); }

std::string gzip(const std::string& bytes) {
  ScratchFolder folder;
  const std::string path = folder.path("file.gz");
  gzFile file = gzopen(path.c_str(), "wb9");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_text(path);
}

const std::string images = "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"s + "abcdefghijkl";

TEST(Idx, ReadsImages) {
  const Array array = read(images);
  EXPECT_EQ(array.dtype(), DType::u8);
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 2, 3}));
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(array.values<uint8_t>()[i], 'a' + i);
}

TEST(Idx, ReadsCompressedImagesWhateverTheirName) {
  ScratchFolder folder;
  folder.write("images", gzip(images));
  const Array array = read_idx(folder.path("images"));
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(array.values<uint8_t>()[11], 'l');
}

TEST(Idx, ReadsEveryType) {
  EXPECT_EQ(read("\0\0\x09\x01\0\0\0\x02\xff\x7f"s).values<int8_t>()[0], -1);
  EXPECT_EQ(read("\0\0\x0b\x01\0\0\0\x01\xff\xfe"s).values<int16_t>()[0], -2);
  EXPECT_EQ(read("\0\0\x0c\x01\0\0\0\x01\0\1\2\3"s).values<int32_t>()[0], 0x010203);
  EXPECT_EQ(read("\0\0\x0d\x01\0\0\0\x01\x3f\xc0\0\0"s).values<float>()[0], 1.5f);
  EXPECT_EQ(read("\0\0\x0e\x01\0\0\0\x01\xbf\xf8\0\0\0\0\0\0"s).values<double>()[0], -1.5);
}

TEST(Idx, ReadsLargeCompressedFiles) {
  std::string bytes = "\0\0\x08\x01\0\x10\0\0"s;
  for (int i = 0; i < 1 << 20; ++i) bytes += static_cast<char>(i * 2654435761u >> 24);
  const Array array = read(gzip(bytes));
  ASSERT_EQ(array.element_count(), 1u << 20);
  for (size_t i = 0; i < 1 << 20; i += 1009) ASSERT_EQ(array.values<uint8_t>()[i], static_cast<uint8_t>(bytes[8 + i]));
}

TEST(Idx, PiecesAreRefused) {
  expect_prefixes_refused(images, read_all);
  expect_prefixes_refused(gzip(images), read_all);
}

TEST(Idx, DamageIsSurvived) {
  expect_damage_survived(images, read_all);
  expect_damage_survived(gzip(images), read_all);
}

TEST(Idx, MalformedFiles) {
  const std::string huge = "\0\0\x08\x02\x7f\xff\xff\xff\x7f\xff\xff\xff"s, packed = gzip(images);
  const std::string false_size = packed.substr(0, packed.size() - 4) + "\xff\xff\xff\x7f";
  const std::string false_sum = packed.substr(0, packed.size() - 8) + "1234" + packed.substr(packed.size() - 4);
  for (const Malformed& file : {
           Malformed{"empty", "", "expected 4 more bytes, but only 0"},
           Malformed{"wrong magic", "\x93NUMPY..", "expected the magic 00 00 of an IDX file, found 93 4e"},
           Malformed{"wrong type", "\0\0\x0a\x01\0\0\0\0"s, "element type 0x0a is not known"},
           Malformed{"cut short", images.substr(0, 20), "needs 12 bytes of data, found 4: the file is cut short"},
           Malformed{"too long", images + "m", "found 13: the file is too long"},
           Malformed{"huge", huge, "the file is cut short"},
           Malformed{"beyond 64 bits", "\0\0\x0e\x03"s + std::string(12, '\xff'), "leaves 64 bits"},
           Malformed{"huge in gzip", gzip(huge), "the file is cut short"},
           Malformed{"not IDX in gzip", gzip("hello, world"), "found 68 65"},
           Malformed{"gzip and nothing", "\x1f\x8b", "at least 18 bytes"},
           Malformed{"false size", false_size, "cannot hold the declared 2147483647 bytes"},
           Malformed{"false checksum", false_sum, "incorrect data check"},
           Malformed{"two members", packed + packed, "unused bytes"},
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Idx, AnErrorCarriesFileAndOffset) {
  try {
    read("\0\0\x07\x01"s);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.file(), "test.idx");
    EXPECT_EQ(error.offset(), 2u);
  }
  expect_error(ErrorKind::io, "/nonexistent/digits", [] { read_idx("/nonexistent/digits"); });
}

}  // namespace
}  // namespace convssm::io
