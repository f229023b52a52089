// Free-running forecasts of any length, frame by frame: constant time and memory per frame for cores with a constant
// state, whatever the length.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "convssm/generate/frame_sink.h"
#include "convssm/models/model.h"

namespace convssm::generate {

struct GenerateResult {
  models::State state;    // after the last frame
  int64_t frames = 0;     // generated; fewer than asked if `progress` said stop or a frame was not finite
  bool diverged = false;  // the frame after these holds NaN or infinity; it was not written
};

// `frames` frames from `state` on; clip i of the batch goes to sinks[i] (no sinks: nowhere). actions [N,frames] or
// undefined. `progress(done)` is called after every frame; a false ends the generation. The sinks are not closed.
GenerateResult generate(models::Model& model, models::State state, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress = {});

}  // namespace convssm::generate
