// The linear recurrence at the heart of every state space model here, over all frames at once:
//   x_k = a_k * x_{k-1} + b_k,   k = 1..L,   elementwise in every lane (sample, pixel, channel).
// Memory-bound: on the CPU it runs at the speed of copying b to x (with coefficients per pixel: of reading these too).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

enum class ScanAlgorithm {
  automatic,  // lanes on the CPU, chunked when there are few lanes, tree on other devices
  naive,      // a loop over frames in plain tensor operations: the reference
  lanes,      // each lane sequential in time, vectorized over channels, threads over lanes (CPU)
  chunked,    // three phases over chunks of time, threads over lanes and chunks (CPU)
  tree,       // work-efficient parallel tree in plain tensor operations, any device
};

struct ScanOptions {
  ScanAlgorithm algorithm = ScanAlgorithm::automatic;
  int64_t chunk = 0;  // frames per chunk of the chunked algorithm; 0 = chosen
};

struct ScanResult {
  at::Tensor x;     // all states, shape of b
  at::Tensor last;  // x_L, shape of x0
};

// Three forms, told apart by dtype:
//   split    a complex, b real    [L,B,...,2P]  (Re half, then Im half of the channels, as a convolution makes it)
//   complex  a complex, b complex [L,B,...,P]
//   real     a real,    b real    [L,B,...,P]
// a is [P], [L,P], [L,B,P] or [L,B,...,P]: coefficients may vary per step (irregular steps), per sample (a_k = 0 is a
// reset) and per pixel (dynamics that depend on the input).
// x0 is one frame of b, [B,...,2P] or [B,...,P]; without it the state starts at zero. Differentiable in a, b and x0.
ScanResult scan(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& x0 = {},
                const ScanOptions& options = {});

// The same in the memory of b, which must be contiguous and must not be used afterwards: it holds x then.
ScanResult scan_(const at::Tensor& a, at::Tensor b, const OptionalTensor& x0 = {}, const ScanOptions& options = {});

// The split form on frames with the channel axis in front: b [L,B,2P,H,W], x0 [B,2P,H,W], a per pixel [L,B,P,H,W].
// Consumes b as scan_ does.
ScanResult scan_frames_(const at::Tensor& a, at::Tensor b, const OptionalTensor& x0 = {},
                        const ScanOptions& options = {});

}  // namespace convssm::ops
