// "Did you mean ...?": the known name closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convssm {

// The number of letters to insert, delete, replace, or swap with their neighbour, to get from a to b.
int edit_distance(std::string_view a, std::string_view b);

// The closest of `known`, or "" if none is close: more than a third of the letters, or more than 3, would change.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Error(usage): "WHAT 'word'; did you mean 'x'?", or the known words if none is close.
[[noreturn]] void fail_unknown(std::string_view what, std::string_view word, const std::vector<std::string>& known);

}  // namespace convssm
