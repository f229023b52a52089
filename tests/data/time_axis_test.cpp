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

// Of CMIP and CESM: the middle of each month, at noon of its 16th day or at the beginning of its 16th or 15th.
TEST(TimeAxis, MonthsMayBeStampedInTheMiddleOrAtTheEnd) {
  for (const char* calendar : {"standard", "noleap"}) {
    const io::CfTime time("days since 1850-01-01", calendar);
    std::vector<double> middles, ends;
    for (int month = 0; month < 30; ++month) {
      if (month == 20) continue;
      const double first = time.add_months(time.seconds_of({2019, 1, 1, 0}), month), next = time.add_months(first, 1);
      middles.push_back((first + next) / 2);
      ends.push_back(next - 86400 / 2);
    }
    const TimeAxis middle = find_time_axis("tas.nc", middles, time), end = find_time_axis("tas.nc", ends, time);
    for (const TimeAxis& axis : {middle, end}) {
      EXPECT_EQ(axis.months, 1);
      EXPECT_TRUE(axis.even);
      EXPECT_EQ(axis.pieces, (std::vector<std::pair<int64_t, int64_t>>{{0, 20}, {20, 9}}));
      EXPECT_EQ(axis.gaps.size(), 1u);
    }
    EXPECT_EQ(time.text(middle.later(middles[0], 1, time)), "2019-02-15 00:00:00");
    EXPECT_EQ(time.text(middle.later(middles[0], 15, time)), "2020-04-16 00:00:00");
    EXPECT_EQ(time.text(end.later(ends[0], 1, time)), "2019-02-28 12:00:00");
    EXPECT_EQ(time.text(end.later(ends[1], 1, time)), "2019-03-31 12:00:00");
  }
}

TEST(TimeAxis, ThirtyDaysAreNoMonth) {
  std::vector<double> seconds;
  for (int i = 0; i < 4; ++i) seconds.push_back(hours.seconds_of({2019, 1, 15, 0}) + 30.0 * 86400 * i);
  const TimeAxis axis = find_time_axis("a.nc", seconds, hours);
  EXPECT_EQ(axis.months, 0);
  EXPECT_EQ(axis.step_text(), "30 days");
}

// A satellite comes when it comes; its steps are no gaps, but for what is far from all of them.
TEST(TimeAxis, StepsThatAllDifferHaveTheOneInTheMiddle) {
  std::vector<double> seconds{0};
  for (const double step : {60.0, 81.3, 70.2, 95.8, 77.7, 400.0, 66.1, 90.5}) seconds.push_back(seconds.back() + step);
  const TimeAxis axis = find_time_axis("a.nc", seconds, hours);
  EXPECT_NEAR(axis.step, 81.3, 1e-9);
  EXPECT_FALSE(axis.even);
  EXPECT_EQ(axis.pieces, (std::vector<std::pair<int64_t, int64_t>>{{0, 6}, {6, 3}}));
  EXPECT_NEAR(axis.intervals(seconds, hours)[4], 95.8 / 81.3, 1e-9);
}

TEST(TimeAxis, DaysOfWhichMostAreMissingAreDays) {
  std::vector<double> seconds;
  for (const double day : {0, 1, 3, 6, 7, 9, 12, 13, 15, 18}) seconds.push_back(day * 86400);
  const TimeAxis axis = find_time_axis("a.nc", seconds, hours);
  EXPECT_EQ(axis.step, 86400);
  EXPECT_TRUE(axis.even);
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
