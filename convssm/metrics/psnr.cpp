#include "convssm/metrics/psnr.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <numeric>

#include "convssm/metrics/frames.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

// Independent sums let the compiler use vectors without changing the order of additions from run to run.
double squared_distance(const float* x, const float* y, int64_t size) {
  constexpr int64_t lanes = 8;
  std::array<double, lanes> sums{};
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double d = static_cast<double>(x[i + lane]) - static_cast<double>(y[i + lane]);
      sums[static_cast<size_t>(lane)] += d * d;
    }
  }
  for (; i < size; ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sums[0] += d * d;
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

at::Tensor psnr_f01(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check_f01_frames("psnr_f01", truth, forecast);
  at::Tensor out = at::empty(pairs.leading, at::kDouble);
  const float* x = pairs.truth.data_ptr<float>();
  const float* y = pairs.forecast.data_ptr<float>();
  double* psnr = out.data_ptr<double>();
  const int64_t size = pairs.frame();
  at::parallel_for(0, pairs.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      psnr[i] = -10 * std::log10(squared_distance(x + i * size, y + i * size, size) / static_cast<double>(size));
    }
  });
  return out;
}

CappedPsnr cap_psnr(const at::Tensor& psnr, double cap_db) {
  ops::require("cap_psnr", psnr.defined() && psnr.is_floating_point(), "psnr must be a tensor of floats");
  ops::require("cap_psnr", std::isfinite(cap_db), "the cap must be finite, got {}", cap_db);
  return {at::clamp_max(psnr, cap_db), at::isposinf(psnr).sum().item<int64_t>()};
}

}  // namespace convssm::metrics
