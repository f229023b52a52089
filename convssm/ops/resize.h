// Frames of half the size, as the encoder makes them.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::ops {

// The mean of every square of 2x2 pixels: x [N,C,H,W] -> [N,C,H/2,W/2], H and W even.
at::Tensor half_size(const at::Tensor& x);

// The same by libtorch: the reference, any device.
at::Tensor half_size_plain(const at::Tensor& x);

}  // namespace convssm::ops
