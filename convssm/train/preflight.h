// What can be known to go wrong before the first step: clips that are too short, pieces that cannot be exact, memory
// that will not suffice. Better now than after an hour.
#pragma once

#include "convssm/train/config.h"

namespace convssm::train {

// Error(usage) or Error(data) if the dataset does not have the clips that training and its samples ask for.
void check_clips(const TrainOptions& options, const data::Dataset& dataset);

// Error(usage) if the dataset has more actions than the model.
void check_actions(const nlohmann::json& model, const data::Dataset& dataset);

// The chunk_frames to train with: those of the config or, if it says auto, `before` (what a run that goes on has chosen;
// kAutomatic: nothing yet) or those that the memory allows. Says what a step will take. `program` are the bytes of the
// process before there was a model. Error(usage) if the pieces would not give the gradients of the whole clip, or a step
// would not fit into memory.
int64_t plan_step(const Config& config, models::Model& model, const data::FrameFormat& frames, uint64_t program,
                  int64_t before = kAutomatic);

}  // namespace convssm::train
