// The conventions of OpenSTL's tables, for Moving-MNIST results that are to be compared with theirs. Errors are summed over
// the pixels of each frame (pixel_sums.h) and PSNR is that of psnr.h; what is their own is the data range of SSIM.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// scikit-image's SSIM of floats where nobody says the data range: up to version 0.19 it is then 2, the width of [-1,1],
// though the frames are in [0,1]. The constants are four times as large, and the values higher.
// truth, forecast [...,C,H,W] float32 in [0,1], H and W at least 7 -> [...] float64.
at::Tensor ssim_openstl(const at::Tensor& truth, const at::Tensor& forecast);

}  // namespace convssm::metrics
