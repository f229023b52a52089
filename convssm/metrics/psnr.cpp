// Infinite values (identical frames) are kept here and capped by the caller, who then knows how many there were: a mean
// over them would be infinite.
#include "convssm/metrics/psnr.h"

#include <cmath>

#include "convssm/metrics/distance.h"
#include "convssm/metrics/frames.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {

at::Tensor psnr_f01(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check_f01_frames("psnr_f01", truth, forecast);
  const auto pixels = static_cast<double>(pairs.frame());
  return for_each_frame<float>(pairs, squared, [&](double sum) { return -10 * std::log10(sum / pixels); });
}

at::Tensor psnr_u8(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check_u8_frames("psnr_u8", truth, forecast);
  const auto pixels = static_cast<double>(pairs.frame());
  return for_each_frame<uint8_t>(pairs, squared,
                                 [&](double sum) { return -10 * std::log10(sum / pixels / (255.0 * 255.0)); });
}

CappedPsnr cap_psnr(const at::Tensor& psnr, double cap_db) {
  ops::require("cap_psnr", psnr.defined() && psnr.is_floating_point(), "psnr must be a tensor of floats");
  ops::require("cap_psnr", std::isfinite(cap_db), "the cap must be finite, got {}", cap_db);
  return {at::clamp_max(psnr, cap_db), at::isposinf(psnr).sum().item<int64_t>()};
}

}  // namespace convssm::metrics
