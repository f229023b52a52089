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
  folder.write("long", std::string(200000, 'x') + "y");
  EXPECT_EQ(read_file(folder.path("some")), bytes);
  EXPECT_EQ(read_file(folder.path("empty")), "");
  EXPECT_EQ(read_file(folder.path("long")), std::string(200000, 'x') + "y");
}

TEST(ReadFile, NothingIsNotEmpty) {
  const ScratchFolder folder;
  EXPECT_EQ(read_file(folder.path("missing")), std::nullopt);
  EXPECT_EQ(read_file(folder.path()), std::nullopt);  // a folder opens but cannot be read
}

}  // namespace
}  // namespace convssm
