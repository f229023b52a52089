// Clips as the metrics take them. Where pixels may be missing, the forecast gets the truth's value there, so that what was not
// measured counts nowhere.
//   Measured measured(truth, valid);
//   of_measured("psnr_f01", psnr_f01(measured.truth(false).f01, measured.forecast(video, false).f01), share)
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

namespace convssm::metrics {

// Frames [B,N,C,H,W] as the metrics take them.
struct Frames {
  at::Tensor f01;         // float32 in [0,1]
  at::Tensor bytes;       // the same as uint8; undefined if they are not 8-bit numbers
  at::Tensor share = {};  // [B,N] of truth: how much of each frame was measured; undefined: all
  at::Tensor uncut = {};  // float32 in [0,1] as they were before they became 8-bit numbers; undefined: f01
};

// From video in [-1,1]; quantize: by way of 8 bits, cut down.
Frames as_frames(const at::Tensor& video, bool quantize);

class Measured {
 public:
  // truth [B,N,C,H,W] in [-1,1], `valid` of its shape; undefined: all was measured.
  Measured(at::Tensor truth, at::Tensor valid) : truth_(std::move(truth)), valid_(std::move(valid)) {}

  Frames truth(bool quantize) const;
  Frames forecast(const at::Tensor& video, bool quantize) const;  // with the truth's pixels where nothing was measured
  const at::Tensor& valid() const { return valid_; }

 private:
  at::Tensor truth_, valid_;
};

// What a metric gave for frames of which that share was measured (undefined: all): a PSNR becomes that of the measured pixels,
// frames without any are NaN. Errors summed over pixels are sums over the measured ones as they are; other metrics see equal
// pixels elsewhere.
at::Tensor of_measured(const std::string& metric, const at::Tensor& values, const at::Tensor& share);

// The last value that was measured of each pixel of video [B,K,C,H,W], [B,C,H,W]; the filler where none was.
at::Tensor last_measured(const at::Tensor& video, const at::Tensor& valid);

}  // namespace convssm::metrics
