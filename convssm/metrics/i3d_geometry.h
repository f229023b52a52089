// Kernel, stride and padding of a layer of I3D on frames of one size, and the convolution that libtorch makes of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convssm/metrics/i3d_engine.h"
#include "convssm/metrics/i3d_layout.h"

namespace convssm::metrics {

// Each of time, height, width.
struct I3dGeometry {
  std::vector<int64_t> kernel, stride, front, back;

  // x: sizes [C/b,T,H,W,b], or [C,T,H,W] without blocks.
  I3dGeometry(at::IntArrayRef x, const I3dPool& k, I3dEngine::Pads time);

  // [channels/b,T',H',W',b]
  std::vector<int64_t> output(at::IntArrayRef x, int64_t channels) const;

  // For at::constant_pad_nd of [...,T,H,W].
  std::vector<int64_t> padding() const { return {front[2], back[2], front[1], back[1], front[0], back[0]}; }
};

// Frames without blocks, [C,T,H,W].
at::Tensor i3d_unblocked(const at::Tensor& x);

// out = ReLU(conv(x) + bias), all contiguous; kernel [O,I,k,k,k].
void i3d_torch_convolution(const I3dGeometry& geometry, const at::Tensor& x, const at::Tensor& kernel,
                           const at::Tensor& bias, const at::Tensor& out);

}  // namespace convssm::metrics
