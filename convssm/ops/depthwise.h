// Convolution of every channel with a kernel of its own: space is mixed and channels are not.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/libtorch.h"

namespace convssm::ops {

// Cross-correlation with zero padding "SAME": x [N,C,H,W], weight [C,1,kh,kw] with odd kh and kw, bias [C] -> [N,C,H,W].
at::Tensor depthwise_conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias = {});

// Throws unless weight is [channels,1,kh,kw] with odd sides: an even kernel has no middle.
void check_depthwise(const char* operation, const at::Tensor& weight, int64_t channels);

}  // namespace convssm::ops
