// The times of the frames of a recording: their usual step, and where it is broken. Nothing is trained across a gap.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convssm/io/cf_time.h"

namespace convssm::data {

// Which part of its month a time is of that stands for all of it.
enum class OfMonth { day, middle, last_day };

struct TimeAxis {
  double step = 0;     // seconds; the most usual one, or where all differ the one in the middle
  int64_t months = 0;  // above 0: each step is so many months of the calendar
  OfMonth of_month = OfMonth::day;
  bool even = true;                                      // all steps within the pieces are that one
  std::vector<std::pair<int64_t, int64_t>> pieces = {};  // first frame and frames of each, between gaps
  std::vector<std::string> gaps = {};  // for people: "2019-03-05 12:00:00 to 2019-03-07 00:00:00 (35 frames missing)"

  // Steps of frames first .. of the axis since the frame before, in units of the usual one; 1 for the first of a piece.
  std::vector<double> intervals(const std::vector<double>& seconds, const io::CfTime& time) const;

  // The time `count` steps after one of the axis.
  double later(double seconds, int64_t count, const io::CfTime& time) const;
  std::string step_text() const;  // "1 hour", "10 minutes", "1 month"
};

// Error(data) that names the file and both times if a time is not later than the one before.
TimeAxis find_time_axis(const std::string& file, const std::vector<double>& seconds, const io::CfTime& time);

}  // namespace convssm::data
