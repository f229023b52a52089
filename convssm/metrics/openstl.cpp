// SSIM depends on the ratio of values to data range alone: of a range of 2 it is that of the halved frames.
#include "convssm/metrics/openstl.h"

#include <ATen/ATen.h>

#include "convssm/metrics/frames.h"
#include "convssm/metrics/ssim.h"

namespace convssm::metrics {

at::Tensor ssim_openstl(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check_f01_frames("ssim_openstl", truth, forecast);
  std::vector<int64_t> shape = pairs.leading;
  shape.insert(shape.end(), {pairs.channels, pairs.height, pairs.width});
  return ssim_uniform7(pairs.truth.view(shape) / 2, pairs.forecast.view(shape) / 2);
}

}  // namespace convssm::metrics
