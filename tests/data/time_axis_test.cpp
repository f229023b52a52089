#include "convssm/data/time_axis.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"

namespace convssm::data {
namespace {

const io::CfTime hours("hours since 2019-03-01", "standard");

TEST(TimeAxis, FindsGapsAndPieces) {
  std::vector<double> seconds;
  for (const double h : {0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 30.0}) seconds.push_back(hours.seconds(h));
  const TimeAxis axis = find_time_axis("a.nc", seconds, hours);
  EXPECT_EQ(axis.step, 3600);
  EXPECT_EQ(axis.months, 0);
  EXPECT_TRUE(axis.even);
  EXPECT_EQ(axis.pieces, (std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 4}, {7, 1}}));
  ASSERT_EQ(axis.gaps.size(), 2u);
  EXPECT_EQ(axis.gaps[0], "2019-03-01 02:00:00 to 2019-03-01 05:00:00 (2 frames missing)");
  EXPECT_EQ(axis.step_text(), "1 hour");
  EXPECT_EQ(axis.intervals(seconds, hours), std::vector<double>(8, 1));
}

TEST(TimeAxis, MonthsAreEvenWhateverTheirLengths) {
  const io::CfTime time("days since 1800-1-1", "standard");
  std::vector<double> seconds;
  for (int month = 0; month < 30; ++month) {
    if (month != 20) seconds.push_back(time.add_months(time.seconds_of({2019, 1, 1, 0}), month));
  }
  const TimeAxis axis = find_time_axis("sst.nc", seconds, time);
  EXPECT_EQ(axis.months, 1);
  EXPECT_TRUE(axis.even);
  EXPECT_EQ(axis.pieces, (std::vector<std::pair<int64_t, int64_t>>{{0, 20}, {20, 9}}));
  EXPECT_EQ(axis.step_text(), "1 month");
  EXPECT_EQ(time.text(axis.later(seconds.back(), 2, time)), "2021-08-01 00:00:00");
}

TEST(TimeAxis, UnevenStepsBecomeIntervals) {
  std::vector<double> seconds;
  for (const double h : {0.0, 1.0, 2.0, 3.25, 4.0, 5.0}) seconds.push_back(hours.seconds(h));
  const TimeAxis axis = find_time_axis("a.nc", seconds, hours);
  EXPECT_FALSE(axis.even);
  EXPECT_EQ(axis.pieces.size(), 1u);
  EXPECT_EQ(axis.intervals(seconds, hours), (std::vector<double>{1, 1, 1, 1.25, 0.75, 1}));
}

TEST(TimeAxis, TimeThatGoesBackIsAnError) {
  try {
    find_time_axis("a.nc", {hours.seconds(1), hours.seconds(0)}, hours);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("frame 1 is of 2019-03-01 00:00:00"), std::string::npos) << error.what();
  }
}

TEST(TimeAxis, OneFrameHasNoStep) {
  const TimeAxis axis = find_time_axis("a.nc", {hours.seconds(1)}, hours);
  EXPECT_EQ(axis.step, 0);
  EXPECT_EQ(axis.pieces.size(), 1u);
}

}  // namespace
}  // namespace convssm::data
