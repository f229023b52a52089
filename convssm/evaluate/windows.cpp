// The beginnings come first, so that data of many short clips is scored as it always is.
#include "convssm/evaluate/windows.h"

#include <algorithm>
#include <set>

namespace convssm::evaluate {

std::vector<Window> test_windows(const data::Dataset& dataset, int64_t frames, int64_t stride, int64_t samples) {
  const uint64_t clips = std::min<uint64_t>(static_cast<uint64_t>(samples), dataset.size(data::Split::test));
  std::vector<Window> windows, later;
  for (uint64_t clip = 0; clip < clips; ++clip) windows.push_back({clip, 0});
  const int64_t missing = samples - static_cast<int64_t>(clips), step = stride > 0 ? stride : frames;
  if (missing == 0 || dataset.longest(data::Split::test) == data::any_length) return windows;
  for (uint64_t clip = 0; clip < clips; ++clip) {
    const int64_t last = dataset.length(data::Split::test, clip) - frames;
    for (int64_t first = step; first <= last; first += step) later.push_back({clip, first});
  }
  const auto found = static_cast<int64_t>(later.size()), chosen = std::min(missing, found);
  for (int64_t i = 0; i < chosen; ++i) windows.push_back(later[static_cast<size_t>(i * found / chosen)]);
  return windows;
}

data::Clips read_windows(const data::Dataset& dataset, std::span<const Window> windows, int64_t frames) {
  std::vector<data::Clips> rows;
  for (const Window& window : windows) {
    rows.push_back(dataset.part(data::Split::test, window.clip, window.first, frames));
  }
  return data::stack_rows(rows);
}

int64_t clips_of(const std::vector<Window>& windows) {
  std::set<uint64_t> clips;
  for (const Window& window : windows) clips.insert(window.clip);
  return static_cast<int64_t>(clips.size());
}

}  // namespace convssm::evaluate
