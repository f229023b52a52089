// A gap is a step of more than one and a half of the usual one. Months have different lengths, so they are looked for by the calendar:
// times of one day and hour of months that follow each other, of their last days, or of their middles, which are other days in a
// month of 28 days than in one of 31.
#include "convssm/data/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "convssm/base/error.h"

namespace convssm::data {
namespace {

constexpr double kGap = 1.5;
constexpr double kEven = 1e-3;  // of a step: what rounding may make of times
constexpr double kDay = 86400;

bool is_whole(double steps) { return std::abs(steps - std::round(steps)) < kEven; }

// The place of a time in its month, and the length of that month, in days.
struct MonthPlace {
  int64_t month;  // counted from the year 0
  double day, length;
};

MonthPlace place_in_month(double seconds, const io::CfTime& time) {
  const io::CfDate date = time.date(seconds);
  const double first = time.seconds_of({date.year, date.month, 1, 0});
  return {date.year * 12 + date.month - 1, date.day - 1 + date.seconds / kDay,
          (time.add_months(first, 1) - first) / kDay};
}

bool is_in(OfMonth part, const MonthPlace& place) {
  constexpr double apart = 1.5;  // days, that the middle is taken for
  return part == OfMonth::last_day ? place.day >= place.length - 1 : std::abs(place.day - place.length / 2) <= apart;
}

// Whole months from one time to another of the same part of its month; 0 if it is no such pair.
int64_t months_between(double from, double to, OfMonth part, const io::CfTime& time) {
  const MonthPlace a = place_in_month(from, time), b = place_in_month(to, time);
  const bool pair = part == OfMonth::day ? std::abs(a.day - b.day) * kDay <= 1 : is_in(part, a) && is_in(part, b);
  return pair ? b.month - a.month : 0;
}

int64_t usual_months(const std::vector<double>& seconds, OfMonth part, const io::CfTime& time) {
  constexpr double shortest_month = 27.5 * kDay;
  int64_t least = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    if (seconds[i] - seconds[i - 1] < shortest_month) return 0;
    const int64_t months = months_between(seconds[i - 1], seconds[i], part, time);
    if (months == 0) return 0;
    least = least == 0 ? months : std::min(least, months);
  }
  return least;
}

// The step that most pairs have, the shortest of those. Where it is that of few pairs and others are no multiples of it, as of a
// satellite that comes when it comes, the one in the middle.
double usual_step(const std::vector<double>& seconds) {
  std::map<int64_t, int64_t> counts;  // by milliseconds
  std::vector<double> steps;
  for (size_t i = 1; i < seconds.size(); ++i) {
    steps.push_back(seconds[i] - seconds[i - 1]);
    ++counts[std::llround(steps.back() * 1e3)];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  if (most == counts.end()) return 0;
  const double usual = static_cast<double>(most->first) * 1e-3;
  const auto is_multiple = [&](double step) { return step > usual / 2 && is_whole(step / usual); };
  if (2 * most->second >= std::ssize(steps) || std::ranges::all_of(steps, is_multiple)) return usual;
  const auto middle = steps.begin() + std::ssize(steps) / 2;
  std::ranges::nth_element(steps, middle);
  return *middle;
}

// Steps of 30 days are such, though they begin as months do.
void set_months(TimeAxis& axis, const std::vector<double>& seconds, const io::CfTime& time) {
  bool equal = seconds.size() > 2;
  for (size_t i = 1; i < seconds.size() && equal; ++i) equal = is_whole((seconds[i] - seconds[i - 1]) / axis.step);
  for (const OfMonth part : {OfMonth::day, OfMonth::last_day, OfMonth::middle}) {
    if (part != OfMonth::day && equal) return;
    axis.months = usual_months(seconds, part, time);
    axis.of_month = part;
    if (axis.months > 0) return;
  }
  axis.of_month = OfMonth::day;
}

double relative_step(const TimeAxis& axis, double from, double to, const io::CfTime& time) {
  if (axis.months > 0) {
    return static_cast<double>(months_between(from, to, axis.of_month, time)) / static_cast<double>(axis.months);
  }
  const double steps = (to - from) / axis.step;
  return is_whole(steps) && steps > 0.5 ? std::round(steps) : steps;
}

}  // namespace

std::vector<double> TimeAxis::intervals(const std::vector<double>& seconds, const io::CfTime& time) const {
  std::vector<double> all(seconds.size(), 1);
  for (const auto& [first, count] : pieces) {
    for (int64_t i = first + 1; i < first + count; ++i) {
      const auto at = static_cast<size_t>(i);
      all[at] = relative_step(*this, seconds[at - 1], seconds[at], time);
    }
  }
  return all;
}

double TimeAxis::later(double seconds, int64_t count, const io::CfTime& time) const {
  if (months == 0) return seconds + step * static_cast<double>(count);
  if (of_month == OfMonth::day) return time.add_months(seconds, months * count);
  const MonthPlace from = place_in_month(seconds, time);
  const double to = time.add_months(seconds - from.day * kDay, months * count);  // the first day of its month
  const double length = place_in_month(to, time).length;
  return to +
         kDay * (of_month == OfMonth::middle ? from.day / from.length * length : length - (from.length - from.day));
}

std::string TimeAxis::step_text() const {
  const auto text = [](double count, const char* unit) {
    return fmt::format("{:.6g} {}{}", count, unit, count == 1 ? "" : "s");
  };
  if (months > 0)
    return months % 12 == 0 ? text(static_cast<double>(months / 12), "year")
                            : text(static_cast<double>(months), "month");
  for (const auto& [length, unit] : {std::pair(86400.0, "day"), {3600.0, "hour"}, {60.0, "minute"}}) {
    if (std::fmod(step, length) == 0) return text(step / length, unit);
  }
  return text(step, "second");
}

TimeAxis find_time_axis(const std::string& file, const std::vector<double>& seconds, const io::CfTime& time) {
  for (size_t i = 1; i < seconds.size(); ++i) {
    if (seconds[i] > seconds[i - 1]) continue;
    fail(ErrorKind::data,
         "[fields] '{}': times must grow from frame to frame, but frame {} is of {} and the one before of {}; sort the "
         "file by "
         "time, and leave out what is there twice",
         file, i, time.text(seconds[i]), time.text(seconds[i - 1]));
  }
  TimeAxis axis;
  const auto frames = static_cast<int64_t>(seconds.size());
  axis.step = usual_step(seconds);
  set_months(axis, seconds, time);
  if (frames < 2) {
    axis.pieces = {{0, frames}};
    return axis;
  }
  int64_t first = 0;
  for (int64_t i = 1; i <= frames; ++i) {
    const auto at = static_cast<size_t>(i);
    const double steps = i < frames ? relative_step(axis, seconds[at - 1], seconds[at], time) : kGap + 1;
    if (steps <= kGap) {
      axis.even = axis.even && steps == 1;
      continue;
    }
    axis.pieces.emplace_back(first, i - first);
    first = i;
    if (i == frames) break;
    axis.gaps.push_back(fmt::format("{} to {} ({:.0f} frames missing)", time.text(seconds[at - 1]),
                                    time.text(seconds[at]), std::max(1.0, std::round(steps) - 1)));
  }
  return axis;
}

}  // namespace convssm::data
