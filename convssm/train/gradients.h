// The gradients of a clip's loss, whole or in pieces of bounded memory.
// In pieces: a first pass without gradients keeps the state at every cut; then from the last piece to the first, each is
// run again with gradients, starting from its state, and hands the gradient of that state to the piece before it.
// By the law of all cores (splitting changes nothing) the result is that of the whole clip.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convssm/models/model.h"

namespace convssm::train {

struct LossValues {
  double loss = 0;
  std::vector<std::pair<std::string, double>> parts;
};

// What a step learns from. video [B,T,C,H,W]; actions [B,T] or undefined; inputs like the video, or undefined: what goes in
// instead of its frames (see Model::loss).
struct TrainingClips {
  at::Tensor video, actions, inputs;
};

// Adds weight * d loss / d parameters to the gradients of the parameters.
// chunk_frames: predicted frames per piece, 0 for the whole clip at once. recompute: every layer keeps only its input and
// is run again (nn/recompute.h).
LossValues add_gradients(models::Model& model, const TrainingClips& clips, int64_t chunk_frames, double weight = 1,
                         bool recompute = false);

}  // namespace convssm::train
