// The variance of a batch is taken back from what libtorch divides by, so that no frame is read twice. A batch with a value that
// is none leaves the running statistics alone: the trainer skips its step, and they would never recover.
#include "convssm/models/fitvid/batch_norm.h"

#include <ATen/ATen.h>

#include "convssm/ops/activation.h"

namespace convssm::models::fitvid {
namespace {

constexpr double kBatchEps = 1e-5, kBatchShare = 0.1;

void move_towards(at::Tensor& running, const at::Tensor& now) {
  running.copy_(at::where(at::isfinite(now), running + kBatchShare * (now - running), running));
}

}  // namespace

BatchNormImpl::BatchNormImpl(int64_t channels, double scale) {
  weight = register_parameter("weight", at::full({channels}, scale));
  bias = register_parameter("bias", at::zeros({channels}));
  mean = register_buffer("mean", at::zeros({channels}));
  variance = register_buffer("variance", at::ones({channels}));
}

at::Tensor BatchNormImpl::forward(const at::Tensor& x, Statistics statistics) {
  if (statistics == Statistics::running) {
    return at::batch_norm(x, weight, bias, mean, variance, false, 0, kBatchEps, false);
  }
  const auto [y, of_batch, over_deviation] = at::native_batch_norm(x, weight, bias, {}, {}, true, 0, kBatchEps);
  if (statistics == Statistics::learn) {
    const at::NoGradGuard no_grad;
    move_towards(mean, of_batch);
    move_towards(variance, at::clamp_min(over_deviation.pow(-2) - kBatchEps, 0));
  }
  return y;
}

at::Tensor BatchNormImpl::forward_swish(const at::Tensor& x, Statistics statistics) {
  return ops::activate(forward(x, statistics), ops::Activation::swish);
}

}  // namespace convssm::models::fitvid
