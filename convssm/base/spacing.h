// A few of many, evenly spaced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace convssm {

// At most `count` of 0 .. all-1, evenly spaced: the first, and from two on the last.
inline std::vector<int64_t> evenly_spaced(int64_t all, int64_t count) {
  std::vector<int64_t> picks;
  const int64_t n = std::min(all, count);
  for (int64_t i = 0; i < n; ++i) picks.push_back(n == 1 ? 0 : i * (all - 1) / (n - 1));
  return picks;
}

}  // namespace convssm
