// The network of a perceptual loss. Models know no files, so whoever assembles a training hands it to them.
#pragma once

#include "convssm/metrics/weights.h"
#include "convssm/models/model.h"

namespace convssm::run {

// A model that learns by LPIPS (vqgan) gets its network, on the model's device, from the weights of the metrics; or, where
// there is none for it, the reason, which it says when it trains. Other models are left as they are.
void give_perceptual(models::Model& model, const metrics::WeightFolder& weights = metrics::WeightFolder());

}  // namespace convssm::run
