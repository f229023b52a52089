// Squares and absolute values are summed in double: 4096 pixels in float32 would lose the digits that tables compare.
#include "convssm/metrics/pixel_sums.h"

#include "convssm/metrics/distance.h"
#include "convssm/metrics/frames.h"

namespace convssm::metrics {
namespace {

double as_it_is(double sum) { return sum; }

}  // namespace

at::Tensor mse_sum(const at::Tensor& truth, const at::Tensor& forecast) {
  return for_each_frame<float>(check_f01_frames("mse_sum", truth, forecast), squared, as_it_is);
}

at::Tensor mae_sum(const at::Tensor& truth, const at::Tensor& forecast) {
  const auto absolute = [](double d) { return std::abs(d); };
  return for_each_frame<float>(check_f01_frames("mae_sum", truth, forecast), absolute, as_it_is);
}

}  // namespace convssm::metrics
