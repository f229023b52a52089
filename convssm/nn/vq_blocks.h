// The blocks of the VQ-GAN's coders (Esser et al. 2021, arXiv 2012.09841), with the parameter names of its public layout, so
// that trained weights are taken over by name. With GN = GroupNorm:
//   ResBlock     of the kind vq_block (nn/res_block.h)
//   VqAttention  out = x + Proj(softmax(q k^T / sqrt(C)) v),  q, k, v = 1x1 convolutions of GN(x), one head over all pixels
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/nn/res_block.h"

namespace convssm::nn {

inline constexpr ResBlockKind vq_block{ops::Activation::swish, 1, "nin_shortcut", true};

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

// ResBlock, VqAttention, ResBlock at the coarsest resolution.
class VqMiddleImpl : public torch::nn::Module {
 public:
  VqMiddleImpl(int64_t channels, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  ResBlock block1_{nullptr}, block2_{nullptr};
  VqAttention attention_{nullptr};
};
TORCH_MODULE(VqMiddle);

}  // namespace convssm::nn
