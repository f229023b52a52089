#include "convssm/io/checksum.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "../base/scratch_folder.h"
#include "convssm/io/crc32c.h"
#include "malformed.h"

namespace convssm::io {
namespace {

// The values that the xxhash package of Python gives for seed 0.
TEST(Checksum, KnownFiles) {
  const ScratchFolder folder;
  const auto checksum = [&](const std::string& text) {
    folder.write("a", text);
    return file_checksum(folder.path("a"));
  };
  EXPECT_EQ(checksum(""), "ef46db3751d8e999");
  EXPECT_EQ(checksum("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(checksum("abc"), "44bc2cf5ad770999");
  for (const size_t size : {size_t{1} << 20, (size_t{1} << 20) + 1, size_t{3} << 20}) {  // around its blocks
    const std::string text(size, 'x');
    EXPECT_EQ(checksum(text), fmt::format("{:016x}", XXH64(text.data(), text.size(), 0))) << size;
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
