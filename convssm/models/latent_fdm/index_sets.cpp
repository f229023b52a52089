// Frames of the other clip are marked as padding whatever their number: neither given nor drawn.
#include "convssm/models/latent_fdm/index_sets.h"

#include <algorithm>
#include <cmath>

namespace convssm::models::latent_fdm {
namespace {

constexpr double kAlmostOne = 0.999;  // keeps the spacing of a single frame finite

}  // namespace

std::vector<int64_t> draw_frames(int64_t K, int64_t T, Stream& random) {
  const double length = static_cast<double>(T);
  for (;;) {
    const auto count = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(std::min(K, T))));
    const double steps = static_cast<double>(count - 1);
    const double spacing = std::pow(length / (steps + 1 - kAlmostOne), random.uniform());
    const double start = random.uniform() * (length - spacing * steps);
    std::vector<int64_t> frames;
    for (int64_t i = 0; i < count; ++i)
      frames.push_back(static_cast<int64_t>(std::floor(start + spacing * static_cast<double>(i))));
    const bool distinct = std::ranges::adjacent_find(frames, std::ranges::greater_equal()) == frames.end();
    if (frames.front() >= 0 && frames.back() < T && distinct) return frames;  // else it was rounded away
  }
}

IndexSet draw_index_set(int64_t K, int64_t T, Stream& random) {
  IndexSet set;
  const auto used = [&](int64_t frame) { return std::ranges::find(set.frames, frame) != set.frames.end(); };
  const auto add = [&](const std::vector<int64_t>& frames, bool given) {
    set.frames.insert(set.frames.end(), frames.begin(), frames.end());
    set.given.resize(set.frames.size(), given ? 1 : 0);
  };
  add(draw_frames(K, T, random), false);
  while (static_cast<int64_t>(set.frames.size()) < std::min(K, T)) {
    const bool given = random.uniform() < 0.5;
    std::vector<int64_t> more = draw_frames(K, T, random);
    std::erase_if(more, used);
    if (static_cast<int64_t>(set.frames.size() + more.size()) > K) break;
    add(more, given);
  }
  set.padding.assign(set.frames.size(), 0);
  while (static_cast<int64_t>(set.frames.size()) < K) {
    set.frames.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(T))));
    set.given.push_back(0);
    set.padding.push_back(1);
  }
  return set;
}

}  // namespace convssm::models::latent_fdm
