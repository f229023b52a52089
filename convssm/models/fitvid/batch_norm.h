// Batch norm over frames: one mean and variance for each channel, of all pixels of all frames of all clips together.
//   y = weight (x - mean) / sqrt(variance + 1e-5) + bias,   running = 0.9 running + 0.1 of the batch, the variance biased
// Which statistics are taken is said with every call and not by the module's mode, so that a forecast takes the running ones
// while its model trains, and a loss whose gradient nobody asks for moves nothing.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace convssm::models::fitvid {

enum class Statistics {
  running,  // kept ones: what comes out for a frame does not depend on the others
  batch,    // those of the call
  learn,    // those of the call, which move the kept ones
};

// `weight`, `bias` [C]; buffers `mean`, `variance` [C].
class BatchNormImpl : public torch::nn::Module {
 public:
  explicit BatchNormImpl(int64_t channels, double scale = 1);            // `scale`: first value of `weight`
  at::Tensor forward(const at::Tensor& x, Statistics statistics);        // [N,C,H,W]
  at::Tensor forward_swish(const at::Tensor& x, Statistics statistics);  // then x sigmoid(x)
  at::Tensor weight, bias, mean, variance;
};
TORCH_MODULE(BatchNorm);

}  // namespace convssm::models::fitvid
