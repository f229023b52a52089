// Steps in whole numbers: opposite ones cancel, arcs add up.
#include "convssm/worlds/pose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace convssm::worlds {
namespace {

TEST(Pose, OppositeStepsCancel) {
  for (int heading = 0; heading < headings; ++heading) {
    const double angle = heading * std::numbers::pi / 12;
    EXPECT_NEAR(cosine(heading), std::cos(angle), 1e-15);
    EXPECT_NEAR(sine(heading), std::sin(angle), 1e-15);
    EXPECT_NEAR(radians(heading), angle, 1e-15);
    const Offset there = ahead(heading, 0.37), back = ahead(heading + 12, 0.37);
    EXPECT_EQ(there.x + back.x, 0);
    EXPECT_EQ(there.y + back.y, 0);
    EXPECT_NEAR(cells(there.x), 0.37 * std::cos(angle), 1e-5);
    EXPECT_NEAR(cells(there.y), 0.37 * std::sin(angle), 1e-5);
  }
  EXPECT_EQ(wrap_heading(-1), 23);
  EXPECT_EQ(wrap_heading(24), 0);
}

TEST(Pose, AQuarterOfACircleEndsOnTheLattice) {
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (const int turn : {-1, 1}) {
      Offset sum;
      for (int i = 0; i < 6; ++i) {
        const int heading = 6 * quarter + turn * i;
        const Offset step = along_arc(heading, turn, 0.5);
        const Offset undone = along_arc(heading + turn + 12, -turn, 0.5);
        EXPECT_EQ(step.x + undone.x, 0);
        EXPECT_EQ(step.y + undone.y, 0);
        sum = {sum.x + step.x, sum.y + step.y};
      }
      const Offset first = ahead(6 * quarter, 0.5), second = ahead(6 * (quarter + turn), 0.5);
      EXPECT_EQ(sum.x, first.x + second.x);
      EXPECT_EQ(sum.y, first.y + second.y);
    }
  }
}

}  // namespace
}  // namespace convssm::worlds
