// Structural similarity, in the two conventions that are common. Only windows inside the frame, each channel alone,
// C1 = 0.01^2, C2 = 0.03^2 for a data range of 1; then the mean over positions and channels.
//   SSIM = (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))
// Wang et al. 2004, doi:10.1109/TIP.2003.819861
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::metrics {

// The paper's: an 11x11 Gaussian window, sigma 1.5, weights that sum to 1.
// truth, forecast [...,C,H,W] float32 in [0,1], H and W at least 11 -> [...] float64, one value per frame. Computed in
// float64: sx^2 is a difference of two nearly equal numbers, and float32 would lose four digits in flat regions.
at::Tensor ssim_gauss11(const at::Tensor& truth, const at::Tensor& forecast);

// What scikit-image computes by default: a 7x7 window of equal weights and unbiased variances. H and W at least 7.
at::Tensor ssim_uniform7(const at::Tensor& truth, const at::Tensor& forecast);

constexpr int64_t ssim_gauss11_side = 11, ssim_uniform7_side = 7;  // smallest frames

// The same in plain tensor operations with all weights of the window: the references.
at::Tensor ssim_gauss11_plain(const at::Tensor& truth, const at::Tensor& forecast);
at::Tensor ssim_uniform7_plain(const at::Tensor& truth, const at::Tensor& forecast);

}  // namespace convssm::metrics
