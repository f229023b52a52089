#include "convssm/worlds/record.h"

#include "convssm/base/error.h"

namespace convssm::worlds {

Recorded record_poses(std::shared_ptr<const World> world, int64_t first, int64_t frames) {
  if (first < 0 || frames < 1) {
    fail(ErrorKind::usage, "[world] expected one or more frames from 0 on, got {} from {} on", frames, first);
  }
  Recorded all;
  Walk walk(std::move(world));
  for (int64_t t = 0; t < first + frames; ++t) {
    const int64_t action = t == 0 ? 0 : walk.step();
    if (t < first) continue;
    all.actions.push_back(action);
    all.poses.push_back(walk.pose());
  }
  return all;
}

Recorded record(std::shared_ptr<const World> world, int64_t first, int64_t frames, const RevisitOptions& options) {
  Recorded all = record_poses(world, first, frames);
  const auto bytes = static_cast<size_t>(world->view().bytes());
  all.video.resize(static_cast<size_t>(frames) * bytes);
  RevisitFinder finder(world->surfaces(), options);
  Sight sight;
  for (size_t t = 0; t < all.poses.size(); ++t) {
    world->render(all.poses[t], std::span(all.video).subspan(t * bytes, bytes), &sight);
    all.revisit.push_back(finder.add(sight));
  }
  return all;
}

}  // namespace convssm::worlds
