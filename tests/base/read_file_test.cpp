#include "convssm/base/read_file.h"

#include <gtest/gtest.h>

#include "tests/base/scratch_folder.h"

namespace convssm {
namespace {

TEST(ReadFile, GivesEveryByte) {
  const ScratchFolder folder;
  const std::string bytes("a\r\n\0\xff\x1a b\n", 9);
  folder.write("some", bytes);
  folder.write("empty", "");
  EXPECT_EQ(read_file(folder.path("some")), bytes);
  EXPECT_EQ(read_file(folder.path("empty")), "");
}

TEST(ReadFile, NothingIsNotEmpty) {
  const ScratchFolder folder;
  EXPECT_EQ(read_file(folder.path("missing")), std::nullopt);
}

}  // namespace
}  // namespace convssm
