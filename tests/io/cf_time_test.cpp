// Times of CF: values of cftime 1.6 (Python), and that every way there has its way back.
#include "convssm/io/cf_time.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"

namespace convssm::io {
namespace {

struct Known {
  const char *units, *calendar;
  double value;
  const char* text;
  double seconds;
};

TEST(CfTime, EqualsCftime) {
  const Known all[] = {
      {"days since 1800-1-1", "standard", 76699, "2009-12-30 00:00:00", 1262131200.0},
      {"hours since 1900-01-01 00:00:0.0", "gregorian", 1043000, "2018-12-26 08:00:00", 1545811200.0},
      {"days since 0001-01-01", "noleap", 735000.25, "2014-09-13 06:00:00", 1409637600.0},
      {"days since 1850-01-01", "360_day", 61234.5, "2020-02-05 12:00:00", 1558180800.0},
      {"days since 1-1-1", "julian", 700000, "1917-07-01 00:00:00", -1656892800.0},
      {"days since 1-1-1", "standard", 500000, "1369-12-05 00:00:00", -18935769600.0},
      {"days since 1-1-1", "standard", 577736, "1582-10-04 00:00:00", -12219379200.0},
      {"days since 1-1-1", "standard", 577737, "1582-10-15 00:00:00", -12219292800.0},
      {"seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian", -86400.5, "1969-12-30 23:59:59.500", -86400.5},
      {"minutes since 2000-02-28 23:30 +01:00", "standard", 2880, "2000-03-01 22:30:00", 951949800.0},
      {"days since 1999-12-31", "all_leap", 60, "2000-02-29 00:00:00", 953769600.0},
      {"days since 0001-01-01", "proleptic_gregorian", 0, "0001-01-01 00:00:00", -62135596800.0},
      {"months since 2010-01-01", "360_day", 14, "2011-03-01 00:00:00", 1280448000.0},
  };
  for (const Known& known : all) {
    const CfTime time(known.units, known.calendar);
    EXPECT_NEAR(time.seconds(known.value), known.seconds, 1e-4) << known.units << " " << known.calendar;
    EXPECT_EQ(time.text(known.seconds), known.text) << known.units << " " << known.calendar;
    EXPECT_NEAR(time.value(known.seconds), known.value, 1e-6) << known.units << " " << known.calendar;
  }
}

TEST(CfTime, EveryDayHasItsDateAndBack) {
  for (const char* calendar : {"standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"}) {
    const CfTime time("days since 1581-12-01", calendar);
    CfDate before = time.date(time.seconds(0));
    for (int day = 1; day < 1200; ++day) {
      const CfDate date = time.date(time.seconds(day));
      EXPECT_EQ(time.seconds_of(date), time.seconds(day)) << calendar << " " << day;
      EXPECT_TRUE(std::pair(date.year * 12 + date.month, date.day) >
                  std::pair(before.year * 12 + before.month, before.day))
          << calendar << " " << time.text(time.seconds(day));
      before = date;
    }
  }
}

TEST(CfTime, CountsMonthsAndPartsOfDaysAndYears) {
  const CfTime time("days since 2000-01-01", "");
  const double last = time.seconds_of({2020, 1, 31, 3600});
  EXPECT_EQ(time.text(time.add_months(last, 1)), "2020-02-29 01:00:00");
  EXPECT_EQ(time.text(time.add_months(last, -2)), "2019-11-30 01:00:00");
  EXPECT_EQ(time.hour_of_day(last), 1);
  EXPECT_NEAR(time.part_of_year(time.seconds_of({2020, 7, 1, 0})), 182.0 / 366, 1e-12);
}

TEST(CfTime, CalendarsOfTwoNamesHaveOne) {
  const auto name = [](const char* calendar) { return CfTime("days since 2000-01-01", calendar).calendar(); };
  EXPECT_EQ(name(""), "standard");
  EXPECT_EQ(name("Gregorian"), "standard");
  EXPECT_EQ(name("365_day"), "noleap");
  EXPECT_EQ(name("366_day"), "all_leap");
  EXPECT_EQ(name("proleptic_gregorian"), "proleptic_gregorian");
}

TEST(CfTime, RefusesWhatIsNoTime) {
  for (const char* units :
       {"hours", "hours since", "hours since yesterday", "furlongs since 2000-01-01", "days since 2000-13-01",
        "days since 2001-02-29", "days since 2000-01-01 25:99", "days since 2000-01-01 00:00 nowhere",
        "months since 2000-01-31", "", " since ", "days since 99999999999-01-01"}) {
    EXPECT_THROW(CfTime(units, ""), Error) << units;
  }
  EXPECT_THROW(CfTime("days since 2000-01-01", "mayan"), Error);
  EXPECT_THROW(CfTime("months since 2000-01-01", "").seconds(0.5), Error);
  EXPECT_TRUE(CfTime::is_time("days since 1800-1-1"));
  EXPECT_FALSE(CfTime::is_time("days"));
  EXPECT_FALSE(CfTime::is_time("rain since yesterday"));
}

}  // namespace
}  // namespace convssm::io
