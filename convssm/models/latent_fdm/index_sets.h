// Which frames of a clip one training example has, and which of them are given: sets of evenly spaced frames, of a random number,
// spacing and place, added to each other until no more fit. So every scheme of sampling meets what it was trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/base/random.h"

namespace convssm::models::latent_fdm {

// s ~ U{1..min(K,T)} frames of a clip of T, g = (T / (s - 0.999))^U(0,1) apart, from a uniform start on.
std::vector<int64_t> draw_frames(int64_t K, int64_t T, Stream& random);

// K frames: of the clip itself, given or to be drawn, and where fewer were chosen, padding from another clip.
struct IndexSet {
  std::vector<int64_t> frames;   // numbers in their clip
  std::vector<int64_t> given;    // 1: observed, 0: drawn or padding
  std::vector<int64_t> padding;  // 1: of the other clip
};

IndexSet draw_index_set(int64_t K, int64_t T, Stream& random);

}  // namespace convssm::models::latent_fdm
