#include "convssm/io/checksum.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/io/crc32c.h"
#include "malformed.h"

namespace convssm::io {
namespace {

// The values that the xxhash package of Python gives for seed 0.
TEST(Checksum, KnownTexts) {
  EXPECT_EQ(text_checksum(""), "ef46db3751d8e999");
  EXPECT_EQ(text_checksum("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(text_checksum("abc"), "44bc2cf5ad770999");
}

TEST(Checksum, FilesAndTextsAgree) {
  const ScratchFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{3} << 20}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 31 >> 3);
    folder.write("a", text);
    EXPECT_EQ(file_checksum(folder.path("a")), text_checksum(text)) << size;
  }
  expect_error(ErrorKind::io, "No such file", [&] { file_checksum(folder.path("b")); });
}

TEST(Crc32c, KnownTexts) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

}  // namespace
}  // namespace convssm::io
