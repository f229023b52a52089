// Words above pictures: what stands in which column, and a line that may change from frame to frame.
#pragma once

#include <string>
#include <vector>

#include "convssm/io/png.h"

namespace convssm::report {

// Grey: `columns` centred over equal parts of the width, `line` below them.
io::Image label_picture(const std::vector<std::string>& columns, const std::string& line, int64_t width);

}  // namespace convssm::report
