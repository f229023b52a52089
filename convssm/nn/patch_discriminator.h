// PatchGAN (Isola et al. 2017, arXiv 1611.07004): a few convolutions whose outputs each judge a patch of the frame. With
// 4x4 kernels padded by one, LReLU of slope 0.2 and BN = batch norm:
//   Conv s2 -> LReLU -> (layers-1) x [Conv s2 -> BN -> LReLU] -> Conv s1 -> BN -> LReLU -> Conv s1 to one channel
// Features double up to 8 times. Three layers see patches of 70 pixels; small frames want fewer.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "convssm/base/random.h"

namespace convssm::nn {

struct PatchDiscriminatorOptions {
  int64_t channels = 3;   // of the frames
  int64_t features = 64;  // of the first layer
  int64_t layers = 3;     // of stride 2

  int64_t map_size(int64_t side) const;  // judgements along a side of this many pixels; not positive: too small
};

class PatchDiscriminatorImpl : public torch::nn::Module {
 public:
  PatchDiscriminatorImpl(const PatchDiscriminatorOptions& options, const Stream& stream);

  // x [N,C,H,W] -> [N,1,h,w]. In training batch norm takes the statistics of the batch; with `learn` they move its running
  // ones, which eval mode takes.
  at::Tensor forward(const at::Tensor& x, bool learn = false);

 private:
  struct Layer {
    at::Tensor weight, bias;                   // bias only without batch norm
    at::Tensor scale, offset, mean, variance;  // of the batch norm after it; undefined: none
    int64_t stride;
  };
  Layer add_layer(int64_t in, int64_t out, int64_t stride, bool norm, const Stream& stream);

  std::vector<Layer> layers_;
};
TORCH_MODULE(PatchDiscriminator);

}  // namespace convssm::nn
