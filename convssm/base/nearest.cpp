// A swap of two neighbouring letters counts as one change, because it is the commonest slip of the fingers; a plain
// Levenshtein distance would count two and miss "tarin" for "train". The full table is kept: names are short.
#include "convssm/base/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "convssm/base/error.h"

namespace convssm {

// Optimal string alignment: the table's row i needs the two rows before it.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  int least = std::min(3, std::max(1, static_cast<int>(word.size()) / 3)) + 1;
  for (const std::string& name : known) {
    const int distance = edit_distance(word, name);
    if (distance < least) best = name, least = distance;
  }
  return best;
}

void fail_unknown(std::string_view what, std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  fail(ErrorKind::usage, "{} '{}'; {}", what, word,
       near.empty() ? fmt::format("known are {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace convssm
