// SAME padding is symmetric for odd kernels and stride 1, which libtorch's convolution does itself; any other is padded
// by hand first, with the extra line at the bottom and right as in JAX. All engines get channels_last memory: oneDNN
// would otherwise reorder every frame there and back.
#include "convssm/ops/conv2d.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>

#include <algorithm>

#include "convssm/ops/check.h"
#include "convssm/ops/conv_algorithm.h"
#include "convssm/ops/device.h"
#include "convssm/ops/flop_meter.h"
#include "convssm/ops/winograd_conv2d.h"

namespace convssm::ops {
namespace {

int64_t total_padding(int64_t size, int64_t kernel, int64_t stride) {
  const int64_t outputs = (size + stride - 1) / stride;
  return std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
}

bool by_winograd(const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  const bool shape = weight.size(2) == 3 && weight.size(3) == 3 && stride == 1;
  if (!shape || x.scalar_type() != at::kFloat || !takes_kernels(x)) return false;
  return chooses_winograd({x.size(0), x.size(2), x.size(3), x.size(1), weight.size(0)});
}

}  // namespace

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, int64_t stride) {
  require_dims("conv2d", "x", x, 4, "[N,C,H,W]");
  require_dims("conv2d", "weight", weight, 4, "[O,C,kh,kw]");
  require("conv2d", weight.size(1) == x.size(1), "weight must be [O,{},kh,kw], got {}", x.size(1),
          shape_text(weight.sizes()));
  require("conv2d", stride > 0, "stride must be positive, got {}", stride);
  require_like("conv2d", "weight", weight, x);
  if (bias) {
    require_shape("conv2d", "bias", *bias, {weight.size(0)});
    require_like("conv2d", "bias", *bias, x);
  }

  const CountedConvolution counted(x, weight, bias.has_value(), stride);
  // The pixels that a strided 1x1 kernel sees, first: oneDNN 2.6, which would gather them itself, overruns its scratch memory in
  // the backward pass of few channels on several threads.
  if (stride > 1 && weight.size(2) == 1 && weight.size(3) == 1) {
    const at::Tensor seen = x.slice(2, 0, x.size(2), stride).slice(3, 0, x.size(3), stride);
    return at::conv2d(seen.contiguous(at::MemoryFormat::ChannelsLast), weight, bias);
  }
  if (by_winograd(x, weight, stride)) return winograd_conv2d(x, weight, bias);
  const int64_t pad_h = total_padding(x.size(2), weight.size(2), stride);
  const int64_t pad_w = total_padding(x.size(3), weight.size(3), stride);
  const auto nhwc = at::MemoryFormat::ChannelsLast;
  if (pad_h % 2 == 0 && pad_w % 2 == 0) {
    return at::conv2d(x.contiguous(nhwc), weight.contiguous(nhwc), bias, stride, {pad_h / 2, pad_w / 2});
  }
  const auto padded = at::constant_pad_nd(x, {pad_w / 2, pad_w - pad_w / 2, pad_h / 2, pad_h - pad_h / 2});
  return at::conv2d(padded.contiguous(nhwc), weight.contiguous(nhwc), bias, stride);
}

}  // namespace convssm::ops
