// The arithmetic of a model, counted.
#pragma once

#include <cstdint>

#include "convssm/models/model.h"

namespace convssm::models {

// Operations of convolutions and matrix products for one more frame of one clip, after two frames (ops/flop_meter.h). Of a
// tokenizer: those of encoding and decoding a frame.
uint64_t flops_per_frame(Model& model, const data::FrameFormat& frames);

}  // namespace convssm::models
