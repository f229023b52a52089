// Convolutions of a plan. Each has a number, by which the ranges that a calibration run observed find it again when the
// plan is built for 8 bits.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/frame_steps.h"
#include "convssm/ops/check.h"
#include "convssm/ops/depthwise.h"
#include "convssm/ops/depthwise_kernels.h"
#include "convssm/ops/packed_conv.h"
#include "convssm/ops/quantize_kernels.h"

namespace convssm::nn {
namespace {

constexpr int64_t kFewChannels = 8;  // convolutions of fewer inputs or outputs cost nothing and stay in float32

// Forecasts leave what was seen in the context: some room on both sides, and for channels that were silent a part of
// what the others had.
ChannelRange with_room(ChannelRange range) {
  constexpr float kRoom = 0.1f, kLeast = 0.05f;
  float widest = 0;
  for (size_t c = 0; c < range.low.size(); ++c) widest = std::max(widest, range.high[c] - range.low[c]);
  for (size_t c = 0; c < range.low.size(); ++c) {
    const float room = std::max(kRoom * (range.high[c] - range.low[c]), kLeast * widest);
    range.low[c] -= room;
    range.high[c] += room;
  }
  return range;
}

}  // namespace

void FramePlan::observe(Buffer x) {
  const size_t index = convs_ - 1;
  seen_.push_back({std::vector<float>(x.channels, std::numeric_limits<float>::infinity()),
                   std::vector<float>(x.channels, -std::numeric_limits<float>::infinity())});
  step({x}, [this, x, index] {
    ChannelRange& range = seen_[index];
    ops::widen_range({batch() * x.pixels(), x.channels, at(x), range.low.data(), range.high.data()});
  });
}

std::unique_ptr<ops::PackedConv> FramePlan::pack(Buffer x, const at::Tensor& weight, const at::Tensor& bias,
                                                 bool exact) {
  const at::Tensor w = weight.detach().to(at::kFloat).contiguous();
  const at::Tensor b = bias.defined() ? bias.detach().to(at::kFloat).contiguous() : bias;
  const int64_t k = w.dim() == 4 ? w.size(2) : 1;
  const ops::ConvShape shape{x.channels, w.size(0), k, x.height, x.width};
  const float* bias_values = b.defined() ? b.data_ptr<float>() : nullptr;
  if (exact || options_.ranges.empty() || std::min(shape.in, shape.out) < kFewChannels) {
    return std::make_unique<ops::PackedConv>(shape, w.data_ptr<float>(), bias_values);
  }
  ops::require("FramePlan", convs_ <= options_.ranges.size(), "there are ranges of {} convolutions only",
               options_.ranges.size());
  const ChannelRange range = with_room(options_.ranges[convs_ - 1]);
  const ops::ConvInputRange input{range.low.data(), range.high.data()};
  return std::make_unique<ops::PackedConv>(shape, w.data_ptr<float>(), bias_values, input);
}

Buffer FramePlan::conv(Buffer x, const at::Tensor& weight, const at::Tensor& bias, const After& after) {
  ops::require("FramePlan", weight.size(1) == x.channels, "weight must be [O,{},k,k], got {}", x.channels,
               ops::shape_text(weight.sizes()));
  ++convs_;
  if (options_.observe) observe(x);
  const std::shared_ptr<ops::PackedConv> packed = pack(x, weight, bias, after.exact);
  scratch_bytes_ = std::max(scratch_bytes_, packed->scratch_bytes(batch()));
  const Buffer y = make(weight.size(0), x.height, x.width);
  step({x, y, after.add}, [this, x, y, after, packed] {
    const float* add = after.add.id < 0 ? nullptr : at(after.add);
    packed->run(at(x), at(y), batch(), scratch_.data_ptr(), {add, after.activation});
  });
  return y;
}

Buffer FramePlan::depthwise(Buffer x, const at::Tensor& weight, const at::Tensor& bias) {
  ops::check_depthwise("FramePlan", weight, x.channels);
  const int64_t kh = weight.size(2), kw = weight.size(3);
  const at::Tensor w = frozen(weight.squeeze(1).permute({1, 2, 0})), b = bias.defined() ? frozen(bias) : bias;
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, y}, [this, x, y, w, b, kh, kw] {
    const int64_t frame = x.pixels() * x.channels;
    const float* offset = b.defined() ? b.data_ptr<float>() : nullptr;
    at::parallel_for(0, batch() * x.height, grain(x.width * x.channels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / x.height * frame, row = i % x.height;
        ops::depthwise_rows({row, row + 1, x.height, x.width, x.channels, kh, kw, at(x) + start, w.data_ptr<float>(),
                             offset, at(y) + start});
      }
    });
  });
  return y;
}

// Four pixels become one with their channels, on which the 3x3 kernel of stride 2 is a 2x2 kernel of stride 1, a line and a
// column of it zero; an even kernel has its padding at the end, where it is wanted.
Buffer FramePlan::conv_down(Buffer x, const at::Tensor& weight, const at::Tensor& bias) {
  ops::require_shape("FramePlan", "weight", weight, {weight.size(0), x.channels, 3, 3});
  const at::Tensor w = at::constant_pad_nd(weight.detach(), {0, 1, 0, 1});  // [O,C,4,4]: rows 2a+p, columns 2b+q
  const at::Tensor folded = w.view({weight.size(0), x.channels, 2, 2, 2, 2}).permute({0, 3, 5, 1, 2, 4});
  return conv(fold2(x), folded.reshape({weight.size(0), 4 * x.channels, 2, 2}), bias);
}

}  // namespace convssm::nn
