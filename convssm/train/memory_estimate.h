// How much memory a training step will take, found by running the model on the first frames of a clip and extrapolating:
// what is kept for the gradients grows with the frames in memory at once, and for attention with their square.
#pragma once

#include <cstdint>
#include <string>

#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

struct MemoryEstimate {
  uint64_t fixed = 0;      // parameters, gradients, moments, averages, scratch, the tensor that a checkpoint is writing
  uint64_t per_frame = 0;  // of one clip
  double per_pair = 0;     // of frames of one clip
  uint64_t state = 0;      // of one clip, at one cut between chunks
  uint64_t pixels = 0;     // of one frame as it is read
  uint64_t program = 0;    // of the process before there is a model
  int64_t given = 1;       // frames of a clip that have no loss: the first of a forecaster, none of others
  int64_t most = 0;        // frames that a loss takes of a clip, however long it is; 0: all

  // The most that a step with these options holds. chunk_frames: auto counts as the whole clip.
  uint64_t total(const TrainOptions& options) const;
};

// Runs the loss of every player forward and backward on the first 4 and 8 frames of a clip (a batch of one; more if a
// model says so, fewer if it is shorter), with the options' recompute and averages. Leaves no gradients, and buffers (running averages, codebooks)
// as they were.
MemoryEstimate estimate_memory(models::Model& model, const data::Clips& clip, const TrainOptions& options = {});

// 0 if a step on whole clips stays within the budget, else the largest chunk_frames that does, evened out over the chunks
// that it needs. If none does: the one that takes least.
int64_t choose_chunk(const MemoryEstimate& estimate, const TrainOptions& options, uint64_t budget);

// Says what a step will take; Error(usage) with advice if that is more than `available` bytes.
std::string check_memory(const MemoryEstimate& estimate, const TrainOptions& options, bool in_chunks,
                         uint64_t available);

}  // namespace convssm::train
