// Generation as the bench measures it: one frame of one clip after another. The one place that chooses the engine.
#pragma once

#include <functional>

#include "bench/bench_models.h"
#include "convssm/generate/predictor.h"

namespace convssm::bench {

using generate::Precision;

using Generator = std::function<at::Tensor()>;  // the next frame [1,C,H,W]

// Goes on from `start`; for int8 calibrated on a short clip before.
Generator make_generator(const BenchModel& subject, const models::State& start,
                         Precision precision = Precision::float32);

// The state after `frames` frames, without computing them: what grows with the frames seen (the caches of attention) is
// made of that size from the state of a short clip. A frame then costs what it costs after that many frames.
models::State state_after(const BenchModel& subject, int64_t frames);

}  // namespace convssm::bench
