// Structural similarity with an 11x11 Gaussian window, as the paper computes it: sigma 1.5, weights that sum to 1, only
// windows inside the frame, each channel alone, C1 = 0.01^2, C2 = 0.03^2 for a data range of 1; then the mean over
// positions and channels. Other implementations pad the frame or use an unbiased variance: their numbers differ.
//   SSIM = (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// truth, forecast [...,C,H,W] float32 in [0,1], H and W at least 11 -> [...] float64, one value per frame. Computed in
// float64: sx^2 is a difference of two nearly equal numbers, and float32 would lose four digits in flat regions.
at::Tensor ssim_gauss11(const at::Tensor& truth, const at::Tensor& forecast);

// Whether frames [...,C,H,W] have room for the window.
bool large_enough_for_ssim(const at::Tensor& frames);

// The same in plain tensor operations with the 121 weights of the window: the reference.
at::Tensor ssim_gauss11_plain(const at::Tensor& truth, const at::Tensor& forecast);

}  // namespace convssm::metrics
