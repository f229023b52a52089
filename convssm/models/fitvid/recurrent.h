// The networks of FitVid that remember: each a dense layer, LSTM layers and heads. Posterior and prior give a normal distribution
// of the latent of a frame, the predictor the hidden that its frame is decoded from. For frame t >= 1, with hidden h of frames
// and the action a_t that led to it:
//   z_t ~ posterior(h_t) in training, ~ prior(h_{t-1}) in forecasts;   predictor([h_{t-1}, a_t, z_t]) -> sigmoid
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "convssm/nn/modules.h"

namespace convssm::models::fitvid {

struct CellState {
  at::Tensor h, c;  // [B,size]
};
using CellStates = std::vector<CellState>;  // of each layer

// LSTM without forget offset. Rows of `input` [4d,in], `hidden` [4d,d] and `bias` [4d]: gates i, f, o, g, as ops/lstm_gates.h.
class LstmImpl : public torch::nn::Module {
 public:
  LstmImpl(int64_t in, int64_t size, Stream stream);
  at::Tensor forward(const at::Tensor& x, CellState& state);  // [L,B,in] -> [L,B,size]
  at::Tensor input, hidden, bias;
};
TORCH_MODULE(Lstm);

// A dense layer and LSTM layers of one size. In all that follows `state` is moved on by the steps of x.
class MemoryImpl : public torch::nn::Module {
 public:
  MemoryImpl(int64_t in, int64_t size, int64_t layers, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, CellStates& state);  // [L,B,in] -> [L,B,size]
  CellStates zeros(int64_t clips, const at::TensorOptions& like) const;

 private:
  int64_t size_;
  nn::Dense first_{nullptr};
  std::vector<Lstm> layers_;
};
TORCH_MODULE(Memory);

struct Gaussian {
  at::Tensor mean, log_variance;                     // [L,B,z]
  at::Tensor sample(const at::Tensor& noise) const;  // mean + exp(log_variance / 2) noise
};

// KL(p || q), summed over the latent: [L,B].
at::Tensor divergence(const Gaussian& p, const Gaussian& q);

// A memory with two heads.
class GaussianMemoryImpl : public torch::nn::Module {
 public:
  GaussianMemoryImpl(int64_t in, int64_t size, int64_t latent, const Stream& stream);
  Gaussian forward(const at::Tensor& x, CellStates& state);
  Memory memory{nullptr};

 private:
  nn::Dense mean_{nullptr}, log_variance_{nullptr};
};
TORCH_MODULE(GaussianMemory);

// A memory of two layers and a head with a sigmoid: [L,B,in] -> [L,B,out].
class PredictorImpl : public torch::nn::Module {
 public:
  PredictorImpl(int64_t in, int64_t size, int64_t out, const Stream& stream);
  at::Tensor forward(const at::Tensor& x, CellStates& state);
  Memory memory{nullptr};

 private:
  nn::Dense mean_{nullptr};
};
TORCH_MODULE(Predictor);

}  // namespace convssm::models::fitvid
