// What the denoiser is made of: layers with the initial values of its published runs, which are PyTorch's (uniform by the size of the
// input), or zero where a block begins as the identity; and its blocks.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/base/random.h"
#include "convssm/nn/modules.h"

namespace convssm::models::latent_fdm {

inline constexpr double kGroupNormEps = 1e-5;

// `weight` [out,in,k,k] and `bias` [out]; padded by (k-1)/2 on each side.
class ConvImpl : public torch::nn::Module {
 public:
  ConvImpl(int64_t in, int64_t out, int64_t kernel, Stream stream, bool zero = false, int64_t stride = 1);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;

 private:
  int64_t stride_;
};
TORCH_MODULE(Conv);

// Over channels, `weight` [out,in] and `bias` [out]: x [N,in] or [N,in,H,W].
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in, int64_t out, Stream stream, bool zero = false);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Linear);

// Group norm of x [N,C,H,W], fewer groups where `groups` does not divide.
class GroupNormImpl : public torch::nn::Module {
 public:
  GroupNormImpl(int64_t channels, int64_t groups);
  at::Tensor forward(const at::Tensor& x, ops::Activation activation = ops::Activation::identity);
  at::Tensor weight, bias;

 private:
  int64_t groups_;
};
TORCH_MODULE(GroupNorm);

// norm, SiLU, conv; norm with a scale and a shift of what is known of the frame, SiLU, conv; and the input.
class ResBlockImpl : public torch::nn::Module {
 public:
  ResBlockImpl(int64_t in, int64_t out, int64_t embedding, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& known);  // [N,in,H,W], SiLU of [N,embedding] -> [N,out,H,W]

 private:
  GroupNorm norm0_{nullptr}, norm1_{nullptr};
  Conv conv0_{nullptr}, conv1_{nullptr}, skip_{nullptr};
  Linear time_{nullptr};
};
TORCH_MODULE(ResBlock);

}  // namespace convssm::models::latent_fdm
