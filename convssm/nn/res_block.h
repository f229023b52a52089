// The residual block of all frame coders, GN = GroupNorm, act = its activation:
//   out = s + r Conv(act(GN(Conv(act(GN(x)))))),  s = x (1x1 convolution if the channels change)
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/nn/modules.h"

namespace convssm::nn {

class FramePlan;
struct Buffer;

// What differs from one coder to another.
struct ResBlockKind {
  ops::Activation activation;
  double residual;       // r
  const char* shortcut;  // the name of the 1x1 convolution
  bool shortcut_bias;
};

class ResBlockImpl : public torch::nn::Module {
 public:
  ResBlockImpl(const ResBlockKind& kind, int64_t in, int64_t out, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,in,H,W] -> [N,out,H,W]
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  at::Tensor scaled(const at::Tensor& x) const;  // r x

  ResBlockKind kind_;
  int64_t groups1_, groups2_;
  Norm norm1_{nullptr}, norm2_{nullptr};
  Conv conv1_{nullptr}, conv2_{nullptr}, shortcut_{nullptr};
};
TORCH_MODULE(ResBlock);

}  // namespace convssm::nn
