// The small modules that everything is made of, with weights drawn from a named random stream.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/base/random.h"
#include "convssm/ops/activation.h"

namespace convssm::nn {

// ops::conv2d with `weight` [out,in,k,k] (lecun normal) and `bias` [out] (zero; undefined without one).
class ConvImpl : public torch::nn::Module {
 public:
  ConvImpl(int64_t in, int64_t out, int64_t kernel, Stream stream, bool with_bias = true);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Conv);

// ops::depthwise_conv2d with `weight` [channels,1,k,k], k odd (normal of this standard deviation, truncated; 0: lecun
// normal), and `bias` [channels] (zero; undefined without one).
class DepthwiseImpl : public torch::nn::Module {
 public:
  DepthwiseImpl(int64_t channels, int64_t kernel, Stream stream, bool with_bias, double std = 0);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Depthwise);

// Over channels: x [N,in,...] -> [N,out,...]. `weight` [out,in], normal of variance scale/in, truncated or not;
// `bias` [out], zero.
class DenseImpl : public torch::nn::Module {
 public:
  DenseImpl(int64_t in, int64_t out, Stream stream, double scale = 1, bool truncated = true);
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

// The number of groups for a group norm of these channels: `wanted` if it divides them, else the largest divisor below it.
int64_t fitting_groups(int64_t channels, int64_t wanted);

// Lines for people, once: for which channels fewer groups were taken than were wanted since the last call. Told where a model
// is first trained; whoever uses it cannot change it.
std::vector<std::string> take_fewer_groups();

// What changes when parameters do: for each its memory and version. Writing through `.data()` changes neither, which is
// why whoever keeps something for a version forgets it when gradients are on and when train() or eval() is called.
struct ParameterVersion {
  const void* memory;
  uint64_t version;
  bool operator==(const ParameterVersion&) const = default;
};
ParameterVersion version_of(const at::Tensor& parameter);

// Throws Error(numeric) if a parameter of the module holds NaN or infinity. Without gradients it looks only at
// parameters that changed since the last call.
class FiniteCheck {
 public:
  void operator()(const char* operation, const torch::nn::Module& module);
  void forget() { seen_.clear(); }

 private:
  std::vector<ParameterVersion> seen_;
};

}  // namespace convssm::nn
