// libtorch computes them. A transposed convolution of a single pixel is a matrix product, which is what it runs as.
#include "convssm/ops/strided_conv.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::ops {
namespace {

void check_strided(const char* operation, const at::Tensor& x, const at::Tensor& weight, int64_t channels_axis,
                   const at::Tensor& bias, int64_t stride, int64_t padding) {
  require_dims(operation, "x", x, 4, "[N,C,H,W]");
  require_dims(operation, "weight", weight, 4, channels_axis == 1 ? "[O,C,kh,kw]" : "[C,O,kh,kw]");
  require(operation, weight.size(channels_axis) == x.size(1), "weight must be for {} channels, got {}", x.size(1),
          shape_text(weight.sizes()));
  require_like(operation, "weight", weight, x);
  require_shape(operation, "bias", bias, {weight.size(1 - channels_axis)});
  require_like(operation, "bias", bias, x);
  require(operation, stride > 0 && padding >= 0, "stride must be positive and padding 0 or more, got {} and {}", stride,
          padding);
}

}  // namespace

at::Tensor strided_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                          int64_t padding) {
  check_strided("strided_conv2d", x, weight, 1, bias, stride, padding);
  const auto steps = [&](int64_t axis) { return x.size(axis) + 2 * padding - weight.size(axis); };
  require("strided_conv2d", steps(2) >= 0 && steps(3) >= 0, "x must be as large as the kernel {}, got {}",
          shape_text(weight.sizes()), shape_text(x.sizes()));
  const int64_t places = x.size(0) * (steps(2) / stride + 1) * (steps(3) / stride + 1);
  const CountedProduct counted(places, weight[0].numel(), weight.size(0));
  return at::conv2d(x, weight, bias, stride, padding);
}

at::Tensor transposed_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                             int64_t padding) {
  check_strided("transposed_conv2d", x, weight, 0, bias, stride, padding);
  const CountedProduct counted(x.size(0) * x.size(2) * x.size(3), x.size(1), weight[0].numel());
  if (x.size(2) != 1 || x.size(3) != 1 || padding != 0) return at::conv_transpose2d(x, weight, bias, stride, padding);
  const at::Tensor y = at::mm(x.flatten(1), weight.flatten(1));
  return y.view({x.size(0), weight.size(1), weight.size(2), weight.size(3)}) + bias.view({1, -1, 1, 1});
}

}  // namespace convssm::ops
