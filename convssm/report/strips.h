// Forecasts of several runs in one picture: the truth above, below it a row for each run with its name, frames ahead at
// the foot. Made of the strips that `convssm evaluate` leaves in samples/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/png.h"
#include "convssm/report/record.h"

namespace convssm::report {

// A strip of an evaluation: truth above, forecast below, this many moments or all frames if there are fewer, evenly
// spaced from the first to the last, with a gap between tiles.
constexpr int64_t strip_moments = 20, strip_gap = 2;

// Of the records that have a strip of this clip. Error(data) if none has, if a strip is not what its evaluation says, or
// if the runs were evaluated on different clips.
io::Image strips_image(const std::vector<const Record*>& records, int64_t clip);

}  // namespace convssm::report
