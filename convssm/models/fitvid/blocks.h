// The residual blocks of FitVid. BN = batch norm, SE = squeeze and excitation; convolutions have no bias.
//   encoder   y = SE(Conv3(swish BN Conv3(swish BN x)))                             the first Conv3 with the stride
//   decoder   y = SE(BN Conv1(swish BN Conv5(swish BN Conv1(BN x))))                Conv5 dense, `expansion` times the channels
//   out = swish(r + y),   r = x, or BN Conv1 x where the shape changes
// The last BN of a decoder block begins with a scale of 0: a new block adds nothing.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/models/fitvid/batch_norm.h"
#include "convssm/nn/modules.h"

namespace convssm::models::fitvid {

// x sigmoid(Dense(relu(Dense(mean of x over pixels)))), with max(C / 16, 4) channels between.
class SqueezeExciteImpl : public torch::nn::Module {
 public:
  SqueezeExciteImpl(int64_t channels, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,C,H,W]

 private:
  nn::Dense squeeze_{nullptr}, excite_{nullptr};
};
TORCH_MODULE(SqueezeExcite);

class EncoderBlockImpl : public torch::nn::Module {
 public:
  EncoderBlockImpl(int64_t in, int64_t out, int64_t stride, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, Statistics statistics);  // [N,in,H,W] -> [N,out,H/stride,W/stride]

 private:
  int64_t stride_;
  BatchNorm norm0_{nullptr}, norm1_{nullptr}, shortcut_norm_{nullptr};
  nn::Conv conv0_{nullptr}, conv1_{nullptr}, shortcut_{nullptr};
  SqueezeExcite scale_{nullptr};
};
TORCH_MODULE(EncoderBlock);

class DecoderBlockImpl : public torch::nn::Module {
 public:
  DecoderBlockImpl(int64_t in, int64_t out, int64_t expansion, bool doubles, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, Statistics statistics);  // [N,in,H,W] -> [N,out,H,W] or of twice the size

 private:
  at::Tensor doubled(const at::Tensor& x) const;

  bool doubles_;
  BatchNorm norm0_{nullptr}, norm1_{nullptr}, norm2_{nullptr}, norm3_{nullptr}, shortcut_norm_{nullptr};
  nn::Conv widen_{nullptr}, conv_{nullptr}, narrow_{nullptr}, shortcut_{nullptr};
  SqueezeExcite scale_{nullptr};
};
TORCH_MODULE(DecoderBlock);

}  // namespace convssm::models::fitvid
