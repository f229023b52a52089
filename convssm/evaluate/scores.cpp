#include "convssm/evaluate/scores.h"

#include <ATen/ATen.h>

#include "convssm/metrics/chunked.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"

namespace convssm::evaluate {
void Scores::add(const at::Tensor& truth, const at::Tensor& forecast) {
  const metrics::CappedPsnr psnr = metrics::cap_psnr(metrics::psnr_f01(truth, forecast));
  values_["psnr_f01"].push_back(psnr.values);
  identical_ += psnr.infinite;
  if (!metrics::large_enough_for_ssim(truth)) return;
  values_["ssim_gauss11"].push_back(metrics::ssim_gauss11(truth, forecast));
}

nlohmann::json Scores::row(int64_t frames, int64_t chunk) const {
  nlohmann::json row = {{"name", name_}};
  for (const auto& [metric, batches] : values_) {
    const metrics::ChunkedMean mean = metrics::chunked_mean(at::cat(batches).slice(1, 0, frames), chunk);
    row[metric] = {{"mean", mean.mean}, {"std", mean.deviation}};
  }
  return row;
}

std::vector<double> Scores::curve(const std::string& metric) const {
  const at::Tensor mean = at::cat(values_.at(metric)).mean(0).to(at::kDouble).contiguous();
  return {mean.data_ptr<double>(), mean.data_ptr<double>() + mean.numel()};
}

std::vector<std::string> Scores::metrics() const {
  std::vector<std::string> names;
  for (const auto& [metric, batches] : values_) names.push_back(metric);
  return names;
}

}  // namespace convssm::evaluate
