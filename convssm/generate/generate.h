// Free-running forecasts of any length, frame by frame: constant time and memory per frame for cores with a constant
// state, whatever the length.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "convssm/generate/frame_sink.h"
#include "convssm/generate/predictor.h"
#include "convssm/models/model.h"

namespace convssm::generate {

struct GenerateResult {
  models::State state;    // after the last frame; empty if it diverged, or of several predictors
  int64_t frames = 0;     // generated; fewer than asked if `progress` said stop or a frame was not finite
  bool diverged = false;  // the frame after these holds NaN or infinity; it was not written
};

// `frames` frames from where the predictor was started; clip i of the batch goes to sinks[i] (no sinks: nowhere).
// actions [N,frames] or [N,frames,A], or undefined. `progress(done)` is called after every frame; a false ends the
// generation. The sinks are not closed.
GenerateResult generate(Predictor& predictor, const at::Tensor& actions, int64_t frames,
                        const std::vector<std::unique_ptr<FrameSink>>& sinks,
                        const std::function<bool(int64_t)>& progress = {});

// The same of several predictors side by side: clip i of predictor m goes to sinks[m * clips + i].
GenerateResult generate(const std::vector<Predictor*>& predictors, const at::Tensor& actions, int64_t frames,
                        const std::vector<FrameSink*>& sinks, const std::function<bool(int64_t)>& progress = {});

// The seed of one of several futures of a clip: a function of the seed of the whole, the number of the clip in its file,
// and the number of the sample.
uint64_t future_seed(uint64_t seed, int64_t clip, int64_t sample);

}  // namespace convssm::generate
