// The mean squared error of a frame whose other pixels are equal is that of the measured ones times their share: its logarithm is
// what a PSNR is corrected by.
#include "convssm/metrics/measured.h"

#include <ATen/ATen.h>

#include <limits>

#include "convssm/metrics/pixels.h"

namespace convssm::metrics {

Frames as_frames(const at::Tensor& video, bool quantize) {
  if (!quantize) return {to_f01(video), {}};
  const at::Tensor bytes = truncate_u8(video);
  return {u8_to_f01(bytes), bytes, {}, to_f01(video)};
}

Frames Measured::truth(bool quantize) const {
  Frames frames = as_frames(truth_, quantize);
  if (valid_.defined()) frames.share = valid_.to(at::kDouble).mean({2, 3, 4});
  return frames;
}

Frames Measured::forecast(const at::Tensor& video, bool quantize) const {
  return as_frames(valid_.defined() ? at::where(valid_, video, truth_) : video, quantize);
}

at::Tensor of_measured(const std::string& metric, const at::Tensor& values, const at::Tensor& share) {
  if (!share.defined()) return values;
  const at::Tensor own = metric.starts_with("psnr") ? values + 10 * share.log10() : values;
  return own.masked_fill(share == 0, std::numeric_limits<double>::quiet_NaN());
}

at::Tensor last_measured(const at::Tensor& video, const at::Tensor& valid) {
  const int64_t K = video.size(1);
  at::Tensor last = video.select(1, K - 1).clone();
  if (!valid.defined()) return last;
  at::Tensor known = valid.select(1, K - 1).clone();
  for (int64_t k = K - 2; k >= 0; --k) {
    const at::Tensor here = valid.select(1, k).logical_and(known.logical_not());
    last = at::where(here, video.select(1, k), last);
    known = known.logical_or(here);
  }
  return last;
}

}  // namespace convssm::metrics
