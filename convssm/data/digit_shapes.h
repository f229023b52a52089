// The shapes of the ten digits as strokes in the unit square, x to the right, y down; one or more styles of each.
#pragma once

#include <vector>

#include "convssm/data/pen.h"

namespace convssm::data {

using Shape = std::vector<Stroke>;

const std::vector<Shape>& digit_styles(int digit);

}  // namespace convssm::data
