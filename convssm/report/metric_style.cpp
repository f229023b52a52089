// How metrics are shown, told by the beginnings of their names: a run may have been scored by a version with others.
#include <algorithm>

#include "convssm/report/sections.h"

namespace convssm::report {

MetricStyle metric_style(const std::string& name) {
  const auto starts_with = [&](const char* head) { return name.rfind(head, 0) == 0; };
  if (starts_with("psnr")) return {"PSNR", "dB, " + name, +1, 2};
  if (starts_with("ssim")) return {"SSIM", name, +1, 3};
  if (starts_with("lpips")) return {"LPIPS", name, -1, 3};
  if (starts_with("fvd")) return {"FVD", name, -1, 1};
  if (starts_with("mse_") || starts_with("mae_")) return {name, "per frame", -1, 2};
  if (starts_with("loss")) return {name, "", -1, 4};
  return {name, "", 0, 4};
}

const char* better_arrow(int better) { return better > 0 ? " ↑" : better < 0 ? " ↓" : ""; }

std::vector<std::string> in_usual_order(std::vector<std::string> metrics) {
  const auto rank = [](const std::string& metric) {
    int place = 0;
    for (const char* head : {"psnr", "ssim", "lpips", "fvd"}) {
      if (metric.starts_with(head)) return place;
      ++place;
    }
    return place;
  };
  std::stable_sort(metrics.begin(), metrics.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  return metrics;
}

}  // namespace convssm::report
