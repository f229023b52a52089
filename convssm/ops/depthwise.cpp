// libtorch's grouped convolution, in channels_last memory, where a group of one channel is one lane of a vector. Plans have
// a kernel of their own (depthwise_kernels.h).
#include "convssm/ops/depthwise.h"

#include <ATen/ops/conv2d.h>

#include "convssm/ops/check.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::ops {

void check_depthwise(const char* operation, const at::Tensor& weight, int64_t channels) {
  require_dims(operation, "weight", weight, 4, "[C,1,kh,kw]");
  const bool odd = weight.size(2) % 2 == 1 && weight.size(3) % 2 == 1;
  require(operation, weight.size(0) == channels && weight.size(1) == 1 && odd,
          "weight must be [{},1,kh,kw] with odd kh and kw, got {}", channels, shape_text(weight.sizes()));
}

at::Tensor depthwise_conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  require_dims("depthwise_conv2d", "x", x, 4, "[N,C,H,W]");
  check_depthwise("depthwise_conv2d", weight, x.size(1));
  require_like("depthwise_conv2d", "weight", weight, x);
  if (bias) {
    require_shape("depthwise_conv2d", "bias", *bias, {x.size(1)});
    require_like("depthwise_conv2d", "bias", *bias, x);
  }
  const CountedConvolution counted(x, weight, bias.has_value(), 1);
  return at::conv2d(x.contiguous(at::MemoryFormat::ChannelsLast), weight, bias, 1,
                    {weight.size(2) / 2, weight.size(3) / 2}, 1, x.size(1));
}

}  // namespace convssm::ops
