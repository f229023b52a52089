// A walk through a world as arrays: frames, actions, poses, and which earlier frame showed the same place.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/worlds/revisit.h"
#include "convssm/worlds/world.h"

namespace convssm::worlds {

struct Recorded {
  std::vector<uint8_t> video;    // [frames,height,width,3]
  std::vector<int64_t> actions;  // action t led to frame t; that of frame 0 of a walk is none, 0
  std::vector<Pose> poses;
  std::vector<int64_t> revisit;  // the number of a frame among these, or -1
};

// Frames first .. first + frames - 1 of the walk by the world's own policy. What comes before is walked, not rendered.
Recorded record(std::shared_ptr<const World> world, int64_t first, int64_t frames, const RevisitOptions& options = {});

// The same without the frames: poses and actions alone.
Recorded record_poses(std::shared_ptr<const World> world, int64_t first, int64_t frames);

}  // namespace convssm::worlds
