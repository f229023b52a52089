// Errors summed over the pixels of a frame, as the tables of OpenSTL and of much Moving-MNIST work before it give them:
// the sum over C,H,W for each frame, averaged over frames and clips. They grow with the frame, so only numbers of one
// frame size can be compared: 64x64 frames have 4096 times the mean squared error of psnr_f01.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// truth, forecast [...,C,H,W] float32 in [0,1] -> [...] float64, one value per frame.
at::Tensor mse_sum(const at::Tensor& truth, const at::Tensor& forecast);  // sum of squares
at::Tensor mae_sum(const at::Tensor& truth, const at::Tensor& forecast);  // sum of absolute values

}  // namespace convssm::metrics
