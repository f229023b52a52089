// The three small modules that everything is made of, with weights drawn from a named random stream.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/base/random.h"
#include "convssm/ops/activation.h"

namespace convssm::nn {

// ops::conv2d with `weight` [out,in,k,k] (lecun normal) and `bias` [out] (zero).
class ConvImpl : public torch::nn::Module {
 public:
  ConvImpl(int64_t in, int64_t out, int64_t kernel, Stream stream);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Conv);

// Over channels: x [N,in,...] -> [N,out,...]. `weight` [out,in], variance scale/in, truncated normal; `bias` [out]
// zero.
class DenseImpl : public torch::nn::Module {
 public:
  DenseImpl(int64_t in, int64_t out, Stream stream, double scale = 1);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Dense);

// The affine parameters of a normalization: `weight` one, `bias` zero.
class NormImpl : public torch::nn::Module {
 public:
  explicit NormImpl(int64_t channels);
  at::Tensor group_norm(const at::Tensor& x, int64_t groups, ops::Activation activation = ops::Activation::identity);
  at::Tensor layer_norm(const at::Tensor& x);
  at::Tensor add_layer_norm(const at::Tensor& x, const at::Tensor& y);  // of x + y
  at::Tensor weight, bias;
};
TORCH_MODULE(Norm);

// Throws Error(numeric) if a parameter of the module holds NaN or infinity. Looks only at parameters that changed since
// the last call on this checker.
class FiniteCheck {
 public:
  void operator()(const char* operation, const torch::nn::Module& module);

 private:
  std::vector<std::pair<const void*, uint64_t>> seen_;
};

}  // namespace convssm::nn
