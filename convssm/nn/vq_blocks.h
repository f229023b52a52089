// The blocks of the VQ-GAN's coders (Esser et al. 2021, arXiv 2012.09841), with the parameter names of its public layout, so
// that trained weights are taken over by name. With GN = GroupNorm:
//   VqResBlock   out = s + Conv(swish(GN(Conv(swish(GN(x)))))),  s = x (1x1 convolution if the channels change)
//   VqAttention  out = x + Proj(softmax(q k^T / sqrt(C)) v),  q, k, v = 1x1 convolutions of GN(x), one head over all pixels
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/nn/modules.h"

namespace convssm::nn {

class FramePlan;
struct Buffer;

class VqResBlockImpl : public torch::nn::Module {
 public:
  VqResBlockImpl(int64_t in, int64_t out, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,in,H,W] -> [N,out,H,W]
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  int64_t groups1_, groups2_;
  Norm norm1_{nullptr}, norm2_{nullptr};
  Conv conv1_{nullptr}, conv2_{nullptr}, shortcut_{nullptr};
};
TORCH_MODULE(VqResBlock);

class VqAttentionImpl : public torch::nn::Module {
 public:
  VqAttentionImpl(int64_t channels, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  int64_t groups_;
  Norm norm_{nullptr};
  Conv q_{nullptr}, k_{nullptr}, v_{nullptr}, out_{nullptr};
};
TORCH_MODULE(VqAttention);

// VqResBlock, VqAttention, VqResBlock at the coarsest resolution.
class VqMiddleImpl : public torch::nn::Module {
 public:
  VqMiddleImpl(int64_t channels, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  VqResBlock block1_{nullptr}, block2_{nullptr};
  VqAttention attention_{nullptr};
};
TORCH_MODULE(VqMiddle);

}  // namespace convssm::nn
