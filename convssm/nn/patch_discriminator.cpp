// Kernels of 4 padded by one on each side are SAME convolutions (ops/conv2d.h) whose last row and column are cut off where
// SAME has more. Weights are drawn as published: N(0, 0.02), scales of batch norm N(1, 0.02).
#include "convssm/nn/patch_discriminator.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/bounds.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/libtorch.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

constexpr int64_t kPatchKernel = 4;
constexpr double kPatchStd = 0.02, kPatchSlope = 0.2, kBatchNormMomentum = 0.1, kBatchNormEps = 1e-5;

int64_t outputs(int64_t side, int64_t stride) { return side < 2 ? 0 : (side - 2) / stride + 1; }

at::Tensor padded_by_one(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride) {
  const at::Tensor y = ops::conv2d(x, weight, if_defined(bias), stride);
  return y.narrow(2, 0, outputs(x.size(2), stride)).narrow(3, 0, outputs(x.size(3), stride));
}

// A layer under a number, as in the public layout; the activations have numbers too.
struct PatchPart : torch::nn::Module {
  using torch::nn::Module::register_buffer;
  using torch::nn::Module::register_parameter;
};

}  // namespace

int64_t PatchDiscriminatorOptions::map_size(int64_t side) const {
  for (int64_t i = 0; i < layers; ++i) side = outputs(side, 2);
  return outputs(outputs(side, 1), 1);
}

PatchDiscriminatorImpl::PatchDiscriminatorImpl(const PatchDiscriminatorOptions& o, const Stream& stream) {
  require_between("PatchDiscriminator", "features", o.features, 1, 4096);
  require_between("PatchDiscriminator", "layers", o.layers, 1, 8);
  const auto wide = [&](int64_t layer) { return o.features * (int64_t{1} << std::min<int64_t>(layer, 3)); };
  int64_t channels = o.channels;
  for (int64_t i = 0; i <= o.layers; ++i) {
    layers_.push_back(add_layer(channels, wide(i), i < o.layers ? 2 : 1, i > 0, stream));
    channels = wide(i);
  }
  layers_.push_back(add_layer(channels, 1, 1, false, stream));
}

PatchDiscriminatorImpl::Layer PatchDiscriminatorImpl::add_layer(int64_t in, int64_t out, int64_t stride, bool norm,
                                                                const Stream& stream) {
  const std::string number = std::to_string(layers_.size());
  Stream own = stream.split("layer", layers_.size());
  Layer layer{ssm::normal({out, in, kPatchKernel, kPatchKernel}, kPatchStd, own), {}, {}, {}, {}, {}, stride};
  auto conv = register_module("conv" + number, std::make_shared<PatchPart>());
  conv->register_parameter("weight", layer.weight);
  if (!norm) {
    layer.bias = conv->register_parameter("bias", at::zeros({out}));
    return layer;
  }
  auto part = register_module("norm" + number, std::make_shared<PatchPart>());
  layer.scale = part->register_parameter("weight", ssm::normal({out}, kPatchStd, own) + 1);
  layer.offset = part->register_parameter("bias", at::zeros({out}));
  layer.mean = part->register_buffer("running_mean", at::zeros({out}));
  layer.variance = part->register_buffer("running_var", at::ones({out}));
  return layer;
}

at::Tensor PatchDiscriminatorImpl::forward(const at::Tensor& x, bool learn) {
  at::Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    h = padded_by_one(h, layer.weight, layer.bias, layer.stride);
    if (layer.scale.defined()) {
      const bool kept = learn || !is_training();
      h = at::batch_norm(h.contiguous(at::MemoryFormat::ChannelsLast), layer.scale, layer.offset,
                         kept ? OptionalTensor(layer.mean) : OptionalTensor(),
                         kept ? OptionalTensor(layer.variance) : OptionalTensor(), is_training(), kBatchNormMomentum,
                         kBatchNormEps, false);
    }
    if (i + 1 < layers_.size()) h = at::leaky_relu(h, kPatchSlope);
  }
  return h;
}

}  // namespace convssm::nn
