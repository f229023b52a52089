// Days are counted by the rule of the calendar: of the Gregorian and Julian ones by the usual count from March on, which puts the
// leap day at the end of a year; of the others by their fixed lengths.
#include "convssm/io/cf_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>

#include "convssm/base/error.h"

namespace convssm::io {
namespace {

constexpr double kDay = 86400;
constexpr std::array<int, 12> kMonths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr int64_t kMostYear = 1'000'000;

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Days from 0000-03-01 to a date, of years that begin in March.
int64_t days_from_march(int64_t year, int month, int day, bool gregorian) {
  const int64_t y = year - (month <= 2), of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t leap_days = floor_div(y, 4) - (gregorian ? floor_div(y, 100) - floor_div(y, 400) : 0);
  return y * 365 + leap_days + of_year;
}

// Days since 1970-01-01 of the Gregorian calendar; both calendars count the same days.
int64_t gregorian_days(int64_t year, int month, int day) { return days_from_march(year, month, day, true) - 719468; }
int64_t julian_days(int64_t year, int month, int day) { return days_from_march(year, month, day, false) - 719470; }

bool is_gregorian_date(int64_t year, int month, int day) {
  return year > 1582 || (year == 1582 && (month > 10 || (month == 10 && day >= 15)));
}

struct Unit {
  double seconds = 0;
  int64_t months = 0;
};

std::optional<Unit> find_unit(std::string name) {
  name = lower_case(name);
  if (name.size() > 2 && name.ends_with("s")) name.pop_back();
  if (name == "second" || name == "sec" || name == "s") return Unit{1};
  if (name == "minute" || name == "min") return Unit{60};
  if (name == "hour" || name == "hr" || name == "h") return Unit{3600};
  if (name == "day" || name == "d") return Unit{kDay};
  if (name == "week") return Unit{7 * kDay};
  if (name == "millisecond" || name == "msec" || name == "ms") return Unit{1e-3};
  if (name == "microsecond") return Unit{1e-6};
  if (name == "nanosecond") return Unit{1e-9};
  if (name == "month") return Unit{0, 1};
  if (name == "year" || name == "yr") return Unit{0, 12};
  return std::nullopt;
}

[[noreturn]] void fail_units(const std::string& units) {
  fail(ErrorKind::data,
       "[time] expected units such as 'hours since 1900-01-01 00:00:00' (seconds, minutes, hours, days, months, "
       "years), found "
       "'{}'",
       units);
}

// "1900-01-01", "1900-1-1 00:00:0.0", "1970-01-01T00:00:00Z", "... +01:00" -> date and seconds to take off for its time zone.
struct Moment {
  CfDate date;
  double zone = 0;
};

// A zone behind the time: Z, UTC, GMT, +hh, +hh:mm, +hhmm; anything else is an error.
std::optional<double> zone_seconds(const std::string& text) {
  const std::string zone = lower_case(text);
  if (zone.empty() || zone == "z" || zone == "utc" || zone == "gmt") return 0;
  int hours = 0, minutes = 0, end = 0;
  if ((zone[0] != '+' && zone[0] != '-') || zone.size() < 2) return std::nullopt;
  const char* digits = zone.c_str() + 1;
  const bool read = std::sscanf(digits, "%2d:%2d%n", &hours, &minutes, &end) == 2 ||
                    std::sscanf(digits, "%2d%2d%n", &hours, &minutes, &end) == 2 ||
                    (minutes = 0, std::sscanf(digits, "%2d%n", &hours, &end) == 1);
  if (!read || digits[end] != '\0' || hours > 14 || minutes > 59) return std::nullopt;
  return (zone[0] == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::optional<Moment> read_moment(const std::string& text) {
  Moment moment;
  long long year = 0;
  int month = 0, day = 0, end = 0;
  if (std::sscanf(text.c_str(), "%7lld-%2d-%2d%n", &year, &month, &day, &end) != 3) return std::nullopt;
  moment.date = {year, month, day, 0};
  std::string rest = trimmed(text.substr(static_cast<size_t>(end)));
  if (!rest.empty() && (rest[0] == 'T' || rest[0] == 't')) rest = rest.substr(1);
  if (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0]))) {
    int hour = 0, minute = 0;
    double second = 0;
    end = 0;
    if (std::sscanf(rest.c_str(), "%2d:%2d:%lf%n", &hour, &minute, &second, &end) != 3) {
      second = 0, end = 0;
      if (std::sscanf(rest.c_str(), "%2d:%2d%n", &hour, &minute, &end) != 2) {
        minute = 0, end = 0;
        if (std::sscanf(rest.c_str(), "%2d%n", &hour, &end) != 1) return std::nullopt;
      }
    }
    if (hour > 24 || minute > 59 || !(second >= 0 && second < 61)) return std::nullopt;
    moment.date.seconds = hour * 3600.0 + minute * 60.0 + second;
    rest = trimmed(rest.substr(static_cast<size_t>(end)));
  }
  const auto zone = zone_seconds(rest);
  if (!zone) return std::nullopt;
  moment.zone = *zone;
  return moment;
}

}  // namespace

bool CfTime::is_time(const std::string& units) {
  const size_t since = lower_case(units).find(" since ");
  return since != std::string::npos && find_unit(trimmed(units.substr(0, since))).has_value();
}

CfTime::CfTime(const std::string& units, const std::string& calendar)
    : units_(units), calendar_(calendar.empty() ? "standard" : lower_case(calendar)) {
  const std::pair<const char*, Rule> rules[] = {
      {"standard", Rule::standard}, {"gregorian", Rule::standard}, {"proleptic_gregorian", Rule::proleptic},
      {"julian", Rule::julian},     {"noleap", Rule::no_leap},     {"365_day", Rule::no_leap},
      {"all_leap", Rule::all_leap}, {"366_day", Rule::all_leap},   {"360_day", Rule::months_of_30}};
  const auto rule = std::ranges::find_if(rules, [&](const auto& known) { return calendar_ == known.first; });
  if (rule == std::end(rules)) {
    fail(ErrorKind::data,
         "[time] unknown calendar '{}'; known: standard, proleptic_gregorian, julian, noleap, all_leap, 360_day",
         calendar);
  }
  rule_ = rule->second;
  calendar_ = std::ranges::find(rules, rule_, &std::pair<const char*, Rule>::second)->first;
  const size_t since = lower_case(units).find(" since ");
  if (since == std::string::npos) fail_units(units);
  const auto unit = find_unit(trimmed(units.substr(0, since)));
  const auto moment = read_moment(trimmed(units.substr(since + 7)));
  if (!unit || !moment) fail_units(units);
  unit_ = unit->seconds, unit_months_ = unit->months;
  const CfDate& date = moment->date;
  const bool known = std::abs(date.year) <= kMostYear && date.month >= 1 && date.month <= 12 && date.day >= 1 &&
                     date.day <= month_length(date.year, date.month) && (unit_months_ == 0 || date.day <= 28);
  if (!known) fail_units(units);
  since_ = seconds_of(date) - moment->zone;
}

double CfTime::seconds(double value) const {
  if (unit_months_ == 0) return since_ + value * unit_;
  const double months = value * static_cast<double>(unit_months_);
  if (std::floor(months) != months || std::abs(months) > 12.0 * kMostYear) {
    fail(ErrorKind::data, "[time] '{}' counts whole months, found {}", units_, value);
  }
  return add_months(since_, static_cast<int64_t>(months));
}

double CfTime::value(double seconds) const {
  if (unit_months_ == 0) return (seconds - since_) / unit_;
  const CfDate from = date(since_), to = date(seconds);
  return static_cast<double>((to.year - from.year) * 12 + to.month - from.month) / static_cast<double>(unit_months_);
}

int64_t CfTime::month_length(int64_t year, int month) const {
  if (rule_ == Rule::months_of_30) return 30;
  const bool fourth = year % 4 == 0, gregorian = rule_ == Rule::proleptic || (rule_ == Rule::standard && year > 1582);
  const bool leap = rule_ == Rule::all_leap ||
                    (rule_ != Rule::no_leap && fourth && (!gregorian || year % 100 != 0 || year % 400 == 0));
  return kMonths[static_cast<size_t>(month - 1)] + (month == 2 && leap);
}

int64_t CfTime::day_number(int64_t year, int month, int day) const {
  switch (rule_) {
    case Rule::standard:
      return is_gregorian_date(year, month, day) ? gregorian_days(year, month, day) : julian_days(year, month, day);
    case Rule::proleptic:
      return gregorian_days(year, month, day);
    case Rule::julian:
      return julian_days(year, month, day) - 13;  // its own 1970-01-01 is 0
    case Rule::months_of_30:
      return (year - 1970) * 360 + (month - 1) * 30 + day - 1;
    default:
      break;
  }
  int64_t days = (year - 1970) * (rule_ == Rule::no_leap ? 365 : 366) + day - 1;
  for (int m = 1; m < month; ++m) days += month_length(year, m);
  return days;
}

double CfTime::seconds_of(const CfDate& date) const {
  return static_cast<double>(day_number(date.year, date.month, date.day)) * kDay + date.seconds;
}

CfDate CfTime::date(double seconds) const {
  // Times that were computed from fractions of days are rounded to microseconds, not to the day before.
  const double rounded = std::round(seconds * 1e6) / 1e6, days = std::floor(rounded / kDay);
  const auto number = static_cast<int64_t>(days);
  // The year is nearly right by the mean length of one; then the calendar's own count decides.
  int64_t year = 1970 + static_cast<int64_t>(std::floor(days / (rule_ == Rule::months_of_30 ? 360.0 : 365.2425)));
  while (day_number(year, 1, 1) > number) --year;
  while (day_number(year + 1, 1, 1) <= number) ++year;
  int month = 12;
  while (month > 1 && day_number(year, month, 1) > number) --month;
  int day = 1;
  while (day < month_length(year, month) && day_number(year, month, day + 1) <= number) ++day;
  if (rule_ == Rule::standard && year == 1582 && month == 10 && day > 4 && day < 15) day += 10;  // there were none
  return {year, month, day, rounded - days * kDay};
}

std::string CfTime::text(double seconds) const {
  const CfDate d = date(seconds);
  const auto whole = static_cast<int64_t>(std::floor(d.seconds));
  const double rest = d.seconds - static_cast<double>(whole);
  std::string text = fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", d.year, d.month, d.day, whole / 3600,
                                 whole / 60 % 60, whole % 60);
  return rest < 5e-4 ? text : text + fmt::format("{:.3f}", rest).substr(1);
}

double CfTime::add_months(double seconds, int64_t months) const {
  CfDate d = date(seconds);
  const int64_t all = d.year * 12 + d.month - 1 + months;
  d.year = floor_div(all, 12), d.month = static_cast<int>(all - d.year * 12) + 1;
  d.day = static_cast<int>(std::min<int64_t>(d.day, month_length(d.year, d.month)));
  return seconds_of(d);
}

double CfTime::hour_of_day(double seconds) const { return date(seconds).seconds / 3600; }

double CfTime::part_of_year(double seconds) const {
  const CfDate d = date(seconds);
  const double first = seconds_of({d.year, 1, 1, 0}), next = seconds_of({d.year + 1, 1, 1, 0});
  return (seconds - first) / (next - first);
}

}  // namespace convssm::io
