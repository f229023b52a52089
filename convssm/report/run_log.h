// The curves of log.jsonl. A line is one JSON object with a step: numbers of a training step, or of a validation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "convssm/report/points.h"

namespace convssm::report {

struct RunLog {
  std::vector<Curve> training;    // by name of the field, in the order of first appearance
  std::vector<Curve> validation;  // the same; fields of nested objects as "copy_last.psnr_f01"
  size_t lines = 0;               // that were understood
  size_t bad_lines = 0;           // that were not, but for a last line cut off by a crash or still being written

  // The curve of that name, nullptr if there is none.
  static const Curve* find(const std::vector<Curve>& curves, const std::string& name);
};

// null, NaN and infinity are gaps. A step that was logged before (a resumed run) replaces all from that step on.
// Empty if there is no file.
RunLog read_log(const std::string& path);

}  // namespace convssm::report
