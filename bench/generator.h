// Generation as the bench measures it: one frame of one clip after another. The one place that chooses the engine.
#pragma once

#include <functional>
#include <memory>

#include "bench/bench_models.h"
#include "convssm/generate/predictor.h"

namespace convssm::bench {

using generate::Precision;

using Generator = std::function<at::Tensor()>;  // the next frame [1,C,H,W]

// For int8 it is to be started by a clip first.
std::shared_ptr<generate::Predictor> make_predictor(const BenchModel& subject,
                                                    Precision precision = Precision::float32);

// Goes on from `start`; for int8 calibrated on a short clip before.
Generator make_generator(const BenchModel& subject, const models::State& start,
                         Precision precision = Precision::float32);

// The state after `frames` frames, without computing them: what grows with the frames seen (the caches of attention) is
// made of that size from the state of a short clip. A frame then costs what it costs after that many frames.
models::State state_after(const BenchModel& subject, int64_t frames);

// Operations of convolutions and matrix products of the next frame then (ops/flop_meter.h).
double flops_after(const BenchModel& subject, int64_t frames);

}  // namespace convssm::bench
