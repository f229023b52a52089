#include "convssm/base/file_ending.h"

#include <gtest/gtest.h>

namespace convssm {
namespace {

TEST(FileEnding, IsInSmallLettersWithItsDot) {
  EXPECT_EQ(file_ending("folder.d/Picture.PNG"), ".png");
  EXPECT_EQ(file_ending("a.tar.gz"), ".gz");
  EXPECT_EQ(file_ending("folder.d/name"), "");
  EXPECT_EQ(file_ending(".hidden"), "");
  EXPECT_EQ(file_ending(""), "");
}

}  // namespace
}  // namespace convssm
