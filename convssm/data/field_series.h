// The files of a recording in grid files as one series of frames: which belong together, which follow each other, where time has gaps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convssm/data/field_choice.h"
#include "convssm/data/field_heads.h"
#include "convssm/data/time_axis.h"
#include "convssm/io/cf_time.h"

namespace convssm::data {

// All that is known when the files were looked at.
struct Series {
  std::vector<FileHead> heads;
  std::vector<std::pair<int64_t, int64_t>> pieces;  // first frame and frames of each clip
  std::optional<io::CfTime> time;
  TimeAxis axis;
  std::vector<double> seconds, intervals;  // of all frames; empty: nobody knows
  bool joined = true;
};

// Heads of which nothing is known but their paths. Files of other variables of the same times go together.
std::vector<FileHead> heads_of(const std::vector<std::string>& paths, const FieldChoice& choice, bool skip_errors);

// Error(data) that names both files unless they have the same variables, units, grid and calendar.
void check_same_grid(const FieldFile& first, const FieldFile& other);

// When all heads are known: their order and groups, the pieces between gaps. Error(data) that names the files if times do not grow or
// overlap in part.
void place_files(Series& series, const std::string& path);

// Leaves of the pieces what is between two times, "2020-10-31 02:00", both included; "": all. Error(data) if that is nothing.
void keep_period(Series& series, const std::string& from, const std::string& until, const std::string& path);

}  // namespace convssm::data
