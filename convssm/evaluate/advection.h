// Extrapolation of the last frames along their motion, as nowcasting does it: a dense motion between them by least squares
// in windows (Lucas and Kanade 1981), from coarse to fine, smoothed; then the last frame carried on along it backwards from
// each pixel (semi-Lagrangian), without change. Each channel moves by its own motion.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/evaluate/references.h"

namespace convssm::evaluate {

// frames [n,T,H,W], T >= 2, taken at equal intervals: the motion that they share, [n,2,H,W], pixels from frame to frame to the
// right and down. `valid` of the same shape: pixels that were measured; undefined: all. Where nothing can be seen to move it
// is that of the surroundings, and zero where nothing moves at all.
at::Tensor motion_of(const at::Tensor& frames, const at::Tensor& valid = {});

// The frame [n,H,W] after 1, 2, ..., steps intervals, [n,steps,H,W], interpolated once and linearly; what comes from outside is the
// nearest pixel of the edge.
at::Tensor carry_on(const at::Tensor& frame, const at::Tensor& motion, int64_t steps);

// By the last three frames, or as many as there are; of one frame it is the copy of it.
std::unique_ptr<Reference> make_advection(const data::Dataset& dataset);

}  // namespace convssm::evaluate
