#include "convssm/base/nearest.h"

#include <gtest/gtest.h>

namespace convssm {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("bench", "bnech"), 1);
  EXPECT_EQ(edit_distance("doctor", "doctor"), 0);
}

TEST(Nearest, FindsATypoAndRefusesAStranger) {
  const std::vector<std::string> known = {"bench", "doctor", "train", "train.lr"};
  EXPECT_EQ(nearest("docter", known), "doctor");
  EXPECT_EQ(nearest("bnech", known), "bench");
  EXPECT_EQ(nearest("train.rl", known), "train.lr");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("paint", known), "");
  EXPECT_EQ(nearest("doctor", {}), "");
}

}  // namespace
}  // namespace convssm
