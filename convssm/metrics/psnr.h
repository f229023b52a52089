// Peak signal-to-noise ratio in dB, the mean over C,H,W inside the logarithm, one value per frame:
//   -10 log10(mean (truth - forecast)^2) of frames in [0,1]; of bytes, with 255 as the peak.
// Means of it depend on where they are taken: here always of the values of frames, never of a whole clip's error.
//   cap_psnr(psnr_f01(truth, forecast)).values    what may be averaged
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::metrics {

// truth, forecast [...,C,H,W] float32 in [0,1] -> [...] float64, one value per frame. Identical frames give infinity,
// as in the paper. Values outside [0,1] and NaN are refused.
at::Tensor psnr_f01(const at::Tensor& truth, const at::Tensor& forecast);

// The same of uint8 frames [...,C,H,W]. Other types are refused: differences of bytes computed in bytes wrap around, and
// published tables exist that were made so.
at::Tensor psnr_u8(const at::Tensor& truth, const at::Tensor& forecast);

// What an identical frame counts as in an average: one infinite frame would hide all others. Different frames stay
// below it if they have 8 bits and up to 220x220 RGB pixels: a single value off by one level in 128x128 RGB is 95 dB.
constexpr double psnr_cap_db = 100;

struct CappedPsnr {
  at::Tensor values;  // min(psnr, cap)
  int64_t infinite;   // how many frames were identical: to be reported with the average
};

CappedPsnr cap_psnr(const at::Tensor& psnr, double cap_db = psnr_cap_db);

}  // namespace convssm::metrics
