// What can be known to go wrong before the first step: clips that are too short, players that nobody knows, chunks that
// cannot be exact, memory that will not suffice. Better now than after an hour.
#pragma once

#include "convssm/data/dataset.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

// Error(usage) or Error(data) if the dataset does not have the clips that training asks for, or the model cannot take
// them. Without valid clips, or with single frames, `sample_interval` becomes 0, with a warning.
void check_data(TrainOptions& options, const data::Dataset& dataset, models::Model& model);

// Error(usage) if rows cannot walk along recordings of this data, or the model cannot go on from a state. Says how far they do.
void check_carrying(const TrainOptions& options, const data::Dataset& dataset, const models::Model& model,
                    uint64_t seed);

// Error(usage) if the options name a player that the model does not have, none learns from the first step, or a parameter
// has two.
void check_players(const TrainOptions& options, const std::vector<models::Player>& players);

// The chunk_frames to train with: those of the options or, if they say auto, `before` (what a run that goes on has chosen;
// kAutomatic: nothing yet) or those that the memory allows. Says what a step will take. `program` are the bytes of the
// process before there was a model. Error(usage) if the chunks would not give the gradients of the whole clip, or a step
// would not fit into memory.
int64_t plan_step(const TrainOptions& options, models::Model& model, const data::Dataset& dataset, uint64_t program,
                  int64_t before = kAutomatic);

}  // namespace convssm::train
