// Convolutions of stride 2 are padded by 1 on both sides, unlike those of ops/conv2d.h.
#include "convssm/models/latent_fdm/layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/norm.h"
#include "convssm/ops/strided_conv.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models::latent_fdm {
namespace {

using ops::Activation;

// Uniform in +-1/sqrt(fan_in), or zero.
at::Tensor first_values(at::IntArrayRef shape, int64_t fan_in, bool zero, Stream& stream) {
  if (zero || ssm::WithoutValues::now()) return at::zeros(shape);
  const double limit = 1 / std::sqrt(static_cast<double>(fan_in));
  at::Tensor x = at::empty(shape);
  float* values = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = static_cast<float>(stream.uniform(-limit, limit));
  return x;
}

}  // namespace

ConvImpl::ConvImpl(int64_t in, int64_t out, int64_t kernel, Stream stream, bool zero, int64_t stride)
    : stride_(stride) {
  const int64_t fan_in = in * kernel * kernel;
  weight = register_parameter("weight", first_values({out, in, kernel, kernel}, fan_in, zero, stream));
  bias = register_parameter("bias", first_values({out}, fan_in, zero, stream));
}

at::Tensor ConvImpl::forward(const at::Tensor& x) {
  if (stride_ == 1) return ops::conv2d(x, weight, bias);
  return ops::strided_conv2d(x, weight, bias, stride_, (weight.size(2) - 1) / 2);
}

LinearImpl::LinearImpl(int64_t in, int64_t out, Stream stream, bool zero) {
  weight = register_parameter("weight", first_values({out, in}, in, zero, stream));
  bias = register_parameter("bias", first_values({out}, in, zero, stream));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return ops::dense(x, weight, bias); }

GroupNormImpl::GroupNormImpl(int64_t channels, int64_t groups) : groups_(nn::fitting_groups(channels, groups)) {
  weight = register_parameter("weight", at::ones({channels}));
  bias = register_parameter("bias", at::zeros({channels}));
}

at::Tensor GroupNormImpl::forward(const at::Tensor& x, Activation activation) {
  return ops::group_norm(x, groups_, weight, bias, activation, kGroupNormEps);
}

ResBlockImpl::ResBlockImpl(int64_t in, int64_t out, int64_t embedding, int64_t groups, const Stream& stream) {
  norm0_ = register_module("norm0", GroupNorm(in, groups));
  conv0_ = register_module("conv0", Conv(in, out, 3, stream.split("conv", 0)));
  time_ = register_module("time", Linear(embedding, 2 * out, stream.split("time")));
  norm1_ = register_module("norm1", GroupNorm(out, groups));
  conv1_ = register_module("conv1", Conv(out, out, 3, stream.split("conv", 1), true));
  if (in != out) skip_ = register_module("skip", Conv(in, out, 1, stream.split("skip")));
}

at::Tensor ResBlockImpl::forward(const at::Tensor& x, const at::Tensor& known) {
  const at::Tensor h = norm1_(conv0_(norm0_(x, Activation::swish)));
  const auto change = time_(known).unsqueeze(-1).unsqueeze(-1).chunk(2, 1);
  const at::Tensor scaled = ops::activate(h * (1 + change[0]) + change[1], Activation::swish);
  return conv1_(scaled) + (skip_ ? skip_(x) : x);
}

}  // namespace convssm::models::latent_fdm
