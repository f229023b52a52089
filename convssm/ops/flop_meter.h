// Counts the arithmetic of forward passes while it lives: two operations per multiplication of convolutions and matrix
// products, by their shapes, whatever engine computes them. Elementwise work is not counted.
//   FlopMeter meter;   model.next(state, {});   double gflops = 1e-9 * static_cast<double>(meter.count());
// One at a time and only for the thread that made it. Operations that libtorch runs for a backward are not meant to be
// counted: half of them would be seen.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convssm::ops {

// One call of ops::conv2d or ops::depthwise_conv2d.
struct ConvolutionShape {
  int64_t frames, in, height, width;  // x [N,C,H,W]
  int64_t out, kernel_h, kernel_w, stride;
  bool bias, input_gradient, weight_gradient;  // of which a backward would need the gradient
  int64_t groups = 1;                          // of channels that do not mix

  uint64_t flops() const;
};

class FlopMeter {
 public:
  FlopMeter();
  ~FlopMeter();
  FlopMeter(const FlopMeter&) = delete;
  FlopMeter& operator=(const FlopMeter&) = delete;

  uint64_t count() const { return count_; }
  const std::vector<ConvolutionShape>& convolutions() const { return convolutions_; }

 private:
  friend class CountedConvolution;
  friend class CountedProduct;
  friend struct FlopObserver;

  uint64_t count_ = 0;
  std::vector<ConvolutionShape> convolutions_;
  int reported_ = 0;  // calls under way that were counted by their shapes: what they call is not counted again
  uint64_t handle_ = 0;
};

// What the doors for convolutions and products hold while they compute; nothing happens without a meter.
class CountedConvolution {
 public:
  CountedConvolution(const at::Tensor& x, const at::Tensor& weight, bool bias, int64_t stride);
  ~CountedConvolution();
  CountedConvolution(const CountedConvolution&) = delete;
  CountedConvolution& operator=(const CountedConvolution&) = delete;

 private:
  FlopMeter* meter_;
};

class CountedProduct {
 public:
  CountedProduct(int64_t rows, int64_t inner, int64_t columns);  // [rows, inner] times [inner, columns]
  ~CountedProduct();
  CountedProduct(const CountedProduct&) = delete;
  CountedProduct& operator=(const CountedProduct&) = delete;

 private:
  FlopMeter* meter_;
};

}  // namespace convssm::ops
