// Members of an ensemble from a model that draws nothing: the same past, remembered with a small error.
#pragma once

#include <vector>

#include "convssm/models/forecaster.h"

namespace convssm::generate {

// Normal noise on what the core of each clip remembers, of `sizes`[i] times the root mean square of each of its tensors; a function of
// the seed of the clip. A size of 0 leaves a clip as it is. Error(usage) for a state without a core's.
models::State perturbed(const models::State& state, const std::vector<double>& sizes, const models::Seeds& seeds);

}  // namespace convssm::generate
