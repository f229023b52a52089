// Names sorted as people number them: "frame2.png" before "frame10.png".
#pragma once

#include <string>

namespace convssm {

// Whether a comes before b: digits are compared as numbers, everything else as bytes.
bool by_numbers(const std::string& a, const std::string& b);

}  // namespace convssm
