// A model's own forecasts as inputs of its training, so that it learns to go on from frames that are not perfect, as it must
// when it runs alone ("scheduled sampling", Bengio et al. 2015; for all frames at once, Duckworth et al. 2019).
//   Without gradients the model forecasts every frame of the clip; each frame but the first is then replaced by the
//   forecast of it with some probability. A second pass forecasts from those inputs, so that errors add up as they do alone.
#pragma once

#include "convssm/base/random.h"
#include "convssm/models/forecaster.h"

namespace convssm::train {

// The clips with what goes in instead of the frames of the video, or of the codes: Clips::inputs. Of a forecast those pixels
// count as measured that were in a true frame before it, as in a future. `start`: the state that the clips go on from. Draws
// from `stream` alone.
data::Clips self_fed(models::Forecaster& forecaster, const data::Clips& clips, double probability, int64_t passes,
                     Stream stream, const models::State& start = {});

// The probability at a step: from 0 it grows evenly and reaches `last` after half of the steps.
double self_feed_at(double last, int64_t step, int64_t steps);

}  // namespace convssm::train
