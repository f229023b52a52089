#include "convssm/base/spacing.h"

#include <gtest/gtest.h>

namespace convssm {
namespace {

using Picks = std::vector<int64_t>;

TEST(Spacing, HasTheFirstAndTheLast) {
  EXPECT_EQ(evenly_spaced(11, 3), (Picks{0, 5, 10}));
  EXPECT_EQ(evenly_spaced(300, 4), (Picks{0, 99, 199, 299}));
  EXPECT_EQ(evenly_spaced(2, 2), (Picks{0, 1}));
}

TEST(Spacing, TakesAllWhereThereAreFew) {
  EXPECT_EQ(evenly_spaced(3, 20), (Picks{0, 1, 2}));
  EXPECT_EQ(evenly_spaced(5, 1), (Picks{0}));
  EXPECT_EQ(evenly_spaced(0, 4), Picks{});
}

}  // namespace
}  // namespace convssm
