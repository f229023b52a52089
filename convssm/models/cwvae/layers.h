// What CW-VAE is made of: layers with the initial values of its published runs (Glorot-uniform kernels, an orthogonal
// recurrent kernel, zero biases), and the networks that take a frame in and give one out.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <vector>

#include "convssm/base/random.h"

namespace convssm::models::cwvae {

// Uniform of variance 2 / (fan_in + fan_out), float32.
at::Tensor glorot_uniform(at::IntArrayRef shape, int64_t fan_in, int64_t fan_out, Stream& stream);

// [rows,columns] with orthonormal columns, rows >= columns, float32.
at::Tensor orthogonal(int64_t rows, int64_t columns, Stream& stream);

// `weight` [out,in] and `bias` [out]: x [N,in] -> [N,out].
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in, int64_t out, Stream stream);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;
};
TORCH_MODULE(Linear);

// n = tanh(W x + b + r (U h + c)), h' = u h + (1 - u) n, with gates r and u. Rows of `input` [3d,in] and `hidden` [3d,d]: r, u, n.
class GruImpl : public torch::nn::Module {
 public:
  GruImpl(int64_t in, int64_t size, Stream stream);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& h);  // [B,in], [B,d] -> [B,d]
  at::Tensor input, hidden, input_bias, hidden_bias;
};
TORCH_MODULE(Gru);

// A convolution of stride 2.
struct NetLayer {
  int64_t in, out, kernel_h, kernel_w, padding;
};

// How a frame becomes `features` numbers and how a frame comes out of as many.
struct NetPlan {
  std::vector<NetLayer> down, up;
  int64_t features = 0;
  int64_t channels = 0, height = 1, width = 1;  // what `up` begins with
};

// Kernels of 4 without padding, as many as leave at least 2 pixels (four for 64 x 64, three for 32 x 32), of `filters`, twice as
// many, ..., at most eight times as many channels. Up from a single pixel, with kernels of 6 where the size is even and 5 where
// it is odd; the first makes the size that is left. Error(usage) for frames of less than 4 pixels.
NetPlan pixel_plan(int64_t channels, int64_t height, int64_t width, int64_t filters);

// For grids of codes: kernels of 4 padded by 1, each halves the grid exactly, as many as leave at least 2 pixels (three for
// 16 x 16), of 2 `filters`, 4, ... channels; up is the mirror image.
NetPlan code_plan(int64_t in, int64_t out, int64_t height, int64_t width, int64_t filters);

// Convolutions with leaky ReLU: [N,C,H,W] -> [N,features].
class DownNetImpl : public torch::nn::Module {
 public:
  DownNetImpl(const NetPlan& plan, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);

 private:
  std::vector<at::Tensor> weights_, biases_;
  std::vector<int64_t> paddings_;
};
TORCH_MODULE(DownNet);

// A linear layer, then transposed convolutions with leaky ReLU between them: [N,in] -> [N,C,H,W], linear.
class UpNetImpl : public torch::nn::Module {
 public:
  UpNetImpl(int64_t in, const NetPlan& plan, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);

 private:
  Linear first_{nullptr};
  std::vector<int64_t> begin_;
  std::vector<at::Tensor> weights_, biases_;
  std::vector<int64_t> paddings_;
};
TORCH_MODULE(UpNet);

}  // namespace convssm::models::cwvae
