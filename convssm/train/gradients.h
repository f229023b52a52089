// The gradients of a clip's loss, whole or in chunks of bounded memory.
// In chunks: a first pass without gradients keeps the state at every cut; then from the last chunk to the first, each is
// run again with gradients, starting from its state, and hands the gradient of that state to the chunk before it.
// By the law of all cores (splitting changes nothing) the result is that of the whole clip.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convssm/models/model.h"

namespace convssm::train {

using NamedValues = std::vector<std::pair<std::string, double>>;

// sum += weight * values, by name; a name that is new is added.
void add_values(NamedValues& sum, const NamedValues& values, double weight);

struct LossValues {
  double loss = 0;
  NamedValues parts;
  std::string warning = {};  // for a person; the newest
  models::State state = {};  // after the last input frame, cut from the graph
};

// Adds weight * d loss / d parameters to the gradients of the parameters.
// chunk_frames: predicted frames per chunk, 0 for the whole clip at once. recompute: every layer keeps only its input and
// is run again (nn/recompute.h). start: the state that the clips go on from; no gradient goes before it.
LossValues add_gradients(models::Model& model, const data::Clips& clips, const models::LossContext& context,
                         int64_t chunk_frames, double weight = 1, bool recompute = false,
                         const models::State& start = {});

// What the loss of some of these clips, whole or in part, counts in that of all (Model::loss_terms).
double share_of(const models::Model& model, const data::Clips& some, const data::Clips& all);

}  // namespace convssm::train
