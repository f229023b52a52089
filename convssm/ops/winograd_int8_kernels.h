// The inner loops of F(4x4,3x3) in whole numbers: inputs of 8 bits, whose transforms are exact in 16; weights rounded
// after their transform to as many bits as sums of 32 bits leave room for (about 12); everything else in float32.
#pragma once

#include <cstdint>

#include "convssm/ops/winograd_kernels.h"

namespace convssm::ops {

constexpr int kInt8Levels = 127;  // inputs are rounded to -127 .. 127 steps

// Weights of one panel of output channels, [9][in][panel width], to weights [36][in/2][panel width][2], positions
// `stride` apart, and scales [36][panel width], positions `scale_stride` apart.
void winograd_int8_pack_panel(const float* taps, int64_t in, int16_t* weights, int64_t stride, float* scales,
                              int64_t scale_stride);

// Input tiles first..end, rounded to whole multiples of the channel's step (cut off beyond kInt8Levels), transformed to
// rows [36][tiles][channels], positions `stride` apart.
void winograd_int8_input(const WinogradFrames& frames, const float* x, int64_t first, int64_t end,
                         const float* inverse_steps, int64_t stride, int16_t* to);

// Products of one position: m [tiles][padded out] = scales * (v [tiles][in] * weights).
void winograd_int8_products(int64_t tiles, int64_t in, int64_t panels, const int16_t* v, const int16_t* weights,
                            const float* scales, float* m);

// As winograd_output, for the points of this variant.
void winograd_int8_output(const WinogradFrames& frames, const WinogradTiles& m, int64_t first, int64_t end,
                          const WinogradEpilogue& epilogue, float* y);

}  // namespace convssm::ops
