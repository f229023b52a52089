// What does not depend on the step before, all products with inputs, is done for all steps at once. Steps are taken apart and put
// together by one operation each: a gradient of single steps would be one of zeros of the whole sequence every time.
#include "convssm/models/fitvid/recurrent.h"

#include <ATen/ATen.h>

#include <string>

#include "convssm/ops/dense.h"
#include "convssm/ops/lstm_gates.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models::fitvid {
namespace {

constexpr int64_t kGates = 4, kLatentLayers = 1, kPredictorLayers = 2;

// A layer over the last axis of [L,B,in].
at::Tensor over_steps(nn::Dense& layer, const at::Tensor& x) {
  return layer(x.flatten(0, 1)).unflatten(0, {x.size(0), x.size(1)});
}

}  // namespace

LstmImpl::LstmImpl(int64_t in, int64_t size, Stream stream) {
  input = register_parameter("input", ssm::lecun_normal({kGates * size, in}, in, stream));
  std::vector<at::Tensor> each;
  for (int64_t gate = 0; gate < kGates; ++gate) each.push_back(ssm::orthogonal(size, stream));
  hidden = register_parameter("hidden", at::cat(each));
  bias = register_parameter("bias", at::zeros({kGates * size}));
}

at::Tensor LstmImpl::forward(const at::Tensor& x, CellState& state) {
  const at::Tensor from_x = ops::dense(x.flatten(0, 1), input).unflatten(0, {x.size(0), x.size(1)});
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& u : from_x.unbind(0)) {
    const ops::LstmResult next = ops::lstm_gates(u, ops::dense(state.h, hidden, bias), state.c);
    state = {next.h, next.c};
    outputs.push_back(next.h);
  }
  return at::stack(outputs);
}

MemoryImpl::MemoryImpl(int64_t in, int64_t size, int64_t layers, const Stream& stream) : size_(size) {
  first_ = register_module("first", nn::Dense(in, size, stream.split("first")));
  for (int64_t i = 0; i < layers; ++i) {
    const Stream own = stream.split("lstm", static_cast<uint64_t>(i));
    layers_.push_back(register_module("lstm" + std::to_string(i), Lstm(size, size, own)));
  }
}

at::Tensor MemoryImpl::forward(const at::Tensor& x, CellStates& state) {
  at::Tensor y = over_steps(first_, x);
  for (size_t i = 0; i < layers_.size(); ++i) y = layers_[i](y, state[i]);
  return y;
}

CellStates MemoryImpl::zeros(int64_t clips, const at::TensorOptions& like) const {
  const at::Tensor zero = at::zeros({clips, size_}, like);
  return CellStates(layers_.size(), {zero, zero});
}

at::Tensor Gaussian::sample(const at::Tensor& noise) const { return mean + at::exp(0.5 * log_variance) * noise; }

at::Tensor divergence(const Gaussian& p, const Gaussian& q) {
  const at::Tensor apart = p.mean - q.mean;
  const at::Tensor each = q.log_variance - p.log_variance + at::exp(p.log_variance - q.log_variance) +
                          apart * apart * at::exp(-q.log_variance) - 1;
  return 0.5 * each.sum(-1);
}

GaussianMemoryImpl::GaussianMemoryImpl(int64_t in, int64_t size, int64_t latent, const Stream& stream) {
  memory = register_module("memory", Memory(in, size, kLatentLayers, stream.split("memory")));
  mean_ = register_module("mean", nn::Dense(size, latent, stream.split("mean")));
  log_variance_ = register_module("log_variance", nn::Dense(size, latent, stream.split("log_variance")));
}

Gaussian GaussianMemoryImpl::forward(const at::Tensor& x, CellStates& state) {
  const at::Tensor y = memory(x, state);
  return {over_steps(mean_, y), over_steps(log_variance_, y)};
}

PredictorImpl::PredictorImpl(int64_t in, int64_t size, int64_t out, const Stream& stream) {
  memory = register_module("memory", Memory(in, size, kPredictorLayers, stream.split("memory")));
  mean_ = register_module("mean", nn::Dense(size, out, stream.split("mean")));
}

at::Tensor PredictorImpl::forward(const at::Tensor& x, CellStates& state) {
  return at::sigmoid(over_steps(mean_, memory(x, state)));
}

}  // namespace convssm::models::fitvid
