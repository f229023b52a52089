// A gap is a step of more than one and a half of the usual one. Months have different lengths, so months are looked for first: times
// of one day and hour of months that follow each other.
#include "convssm/data/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "convssm/base/error.h"

namespace convssm::data {
namespace {

constexpr double kGap = 1.5;
constexpr double kEven = 1e-3;  // of a step: what the rounding of times as f32 days may be

// Whole months from one time to another of the same day and hour; 0 if it is no such pair.
int64_t months_between(double from, double to, const io::CfTime& time) {
  const io::CfDate a = time.date(from), b = time.date(to);
  if (a.day != b.day || std::abs(a.seconds - b.seconds) > 1) return 0;
  return (b.year - a.year) * 12 + b.month - a.month;
}

int64_t usual_months(const std::vector<double>& seconds, const io::CfTime& time) {
  constexpr double shortest_month = 27.5 * 86400;
  int64_t least = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    if (seconds[i] - seconds[i - 1] < shortest_month) return 0;
    const int64_t months = months_between(seconds[i - 1], seconds[i], time);
    if (months == 0) return 0;
    least = least == 0 ? months : std::min(least, months);
  }
  return least;
}

// The step that most pairs have, the shortest of those.
double usual_step(const std::vector<double>& seconds) {
  std::map<int64_t, int64_t> counts;  // by milliseconds
  for (size_t i = 1; i < seconds.size(); ++i) ++counts[std::llround((seconds[i] - seconds[i - 1]) * 1e3)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? 0 : static_cast<double>(most->first) * 1e-3;
}

double relative_step(const TimeAxis& axis, double from, double to, const io::CfTime& time) {
  if (axis.months > 0) return static_cast<double>(months_between(from, to, time)) / static_cast<double>(axis.months);
  const double steps = (to - from) / axis.step;
  return std::abs(steps - std::round(steps)) < kEven && steps > 0.5 ? std::round(steps) : steps;
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
  return months > 0 ? time.add_months(seconds, months * count) : seconds + step * static_cast<double>(count);
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
  axis.months = usual_months(seconds, time);
  axis.step = usual_step(seconds);
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
