// Which earlier frame showed the same place. The overlap of frame t with frame s is the share of the rays of t that end on
// surfaces which s shows too (each by at least 1/256 of its rays; rays into the sky count for neither). Frame s is the
// revisit of t if it is the last frame before t such that
//   the overlap of t with s is at least `overlap`,  s <= t - `gap`,  and
//   the place was out of view between them: some u, s < u < t, with an overlap of t with u below half of `overlap`.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/worlds/world.h"

namespace convssm::worlds {

struct RevisitOptions {
  double overlap = 0.7;
  int64_t gap = 10;
};

class RevisitFinder {
 public:
  RevisitFinder(int64_t surfaces, const RevisitOptions& options);

  // Of the next frame: the number of the earlier one, from 0 on, or -1.
  int64_t add(const Sight& sight);

 private:
  double overlap(const Sight& sight, int64_t rays, int64_t frame) const;

  RevisitOptions options_;
  size_t words_;                // of the set of one frame
  std::vector<uint64_t> sets_;  // [frames, words_], a bit for each surface that the frame shows
  int64_t frames_ = 0;
};

}  // namespace convssm::worlds
