// Times as the CF conventions have them: numbers with units such as "hours since 1900-01-01 00:00" of a calendar, as seconds since
// 1970-01-01 00:00 of that calendar and back.
//   const CfTime time("days since 1800-1-1", "standard");   double seconds = time.seconds(76699);   time.text(seconds) is "2010-01-01 00:00:00"
// Calendars: standard (gregorian; Julian before 1582-10-15), proleptic_gregorian, julian, noleap (365_day), all_leap (366_day), 360_day.
// Months and years as units are those of the calendar: whole ones, of a first day that is no later than the 28th.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace convssm::io {

// Month and day count from 1.
struct CfDate {
  int64_t year = 1970;
  int month = 1, day = 1;
  double seconds = 0;  // of the day
};

class CfTime {
 public:
  // Error(data) for units or a calendar that are none of the above. An empty calendar is standard.
  CfTime(const std::string& units, const std::string& calendar);

  // Whether units are those of a time: "... since ...".
  static bool is_time(const std::string& units);

  const std::string& units() const { return units_; }
  const std::string& calendar() const { return calendar_; }  // by the name that CF prefers: "standard", "noleap"

  double seconds(double value) const;  // of a number as the file has it
  double value(double seconds) const;  // and back

  CfDate date(double seconds) const;
  double seconds_of(const CfDate& date) const;
  std::string text(double seconds) const;                   // "2020-10-31 14:10:00"
  double add_months(double seconds, int64_t months) const;  // the same day and hour of a later month, or its last day
  double hour_of_day(double seconds) const;                 // [0,24)
  double part_of_year(double seconds) const;                // [0,1)

 private:
  int64_t day_number(int64_t year, int month, int day) const;  // days since 1970-01-01 of the calendar
  int64_t month_length(int64_t year, int month) const;

  enum class Rule { standard, proleptic, julian, no_leap, all_leap, months_of_30 };
  std::string units_, calendar_;
  Rule rule_ = Rule::standard;
  double unit_ = 1;          // seconds
  int64_t unit_months_ = 0;  // above 0: the unit is so many months
  double since_ = 0;         // seconds
};

}  // namespace convssm::io
