// What can be known to go wrong before the first step: clips that are too short, pieces that cannot be exact, memory
// that will not suffice. Better now than after an hour.
#pragma once

#include "convssm/train/config.h"

namespace convssm::train {

// Error(usage) or Error(data) if the dataset does not have the clips that training and its samples ask for.
void check_clips(const TrainOptions& options, const data::Dataset& dataset);

// Error(usage) if the dataset has more actions than the model.
void check_actions(const nlohmann::json& model, const data::Dataset& dataset);

// Error(usage) if `chunk_frames` would not give the gradients of the whole clip, or a step would not fit into memory;
// else says what it will take.
void check_step(const Config& config, models::Model& model, const data::FrameFormat& frames);

}  // namespace convssm::train
