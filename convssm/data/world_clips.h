// Clips of worlds that render themselves (worlds/): every world is a dataset of its name. Frames are RGB, actions whole
// numbers, and each clip knows which earlier frame showed the same place. Clips can be as long as one asks for, and their
// first frames do not depend on how long.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/data/clip_counts.h"
#include "convssm/data/dataset.h"
#include "convssm/worlds/revisit.h"
#include "convssm/worlds/world.h"

namespace convssm::data {

// For the table of datasets: one entry for each world of this library.
std::vector<DatasetInfo> world_datasets();

// How clips are made of worlds.
struct WorldClipsOptions {
  ClipCounts counts{40000, 256, 1024};
  worlds::RevisitOptions revisit;
};

// Takes the options of the clips out of `options` and leaves those of the world. Error(usage) for wrong ones.
WorldClipsOptions take_clips_options(const std::string& world, nlohmann::json& options);

// Options of the world, and of the clips: clips, valid_clips, test_clips, revisit_overlap, revisit_gap.
std::shared_ptr<const Dataset> make_world_clips(const worlds::WorldInfo& world, const nlohmann::json& options,
                                                uint64_t seed);

// Frames of a world [T,height,width,3] as a video [1,T,3,height,width] in [-1,1].
at::Tensor world_video(const std::vector<uint8_t>& frames, const worlds::View& view);

}  // namespace convssm::data
