// A trained model on frames of another size than those that it learned from: built again for them, with the weights that it
// has. Convolutions and states per pixel do not ask how large a frame is; what a model learned of it (edges, statistics of
// group norms) may be otherwise there, so scores say which size they are of.
#pragma once

#include "convssm/run/model_file.h"

namespace convssm::run {

// Channels and units stay, loaded.recipe.frames says the new size. Nothing happens if it is of that size already. Error(usage)
// if its weights belong to one size (models::Model::obstacle_to_other_sizes).
void change_frame_size(LoadedModel& loaded, int64_t height, int64_t width);

}  // namespace convssm::run
