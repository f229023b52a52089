#include "convssm/metrics/ssim.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "convssm/metrics/frames.h"
#include "convssm/metrics/ssim_kernels.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

FramePairs check(const at::Tensor& truth, const at::Tensor& forecast) {
  FramePairs pairs = check_f01_frames("ssim_gauss11", truth, forecast);
  ops::require("ssim_gauss11", pairs.height >= ssim_taps && pairs.width >= ssim_taps,
               "frames must be at least {0}x{0}, the size of the window, got {1}x{2}", ssim_taps, pairs.height,
               pairs.width);
  return pairs;
}

}  // namespace

at::Tensor ssim_gauss11(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check(truth, forecast);
  const auto window = ssim_window();
  const double positions =
      static_cast<double>(pairs.channels * (pairs.height - ssim_taps + 1) * (pairs.width - ssim_taps + 1));
  at::Tensor out = at::empty(pairs.leading, at::kDouble);
  double* ssim = out.data_ptr<double>();
  at::parallel_for(0, pairs.frames, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(static_cast<size_t>(ssim_scratch(pairs.width)));
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < pairs.channels; ++c) {
        const int64_t offset = i * pairs.frame() + c * pairs.plane();
        sum += ssim_sum({pairs.truth.data_ptr<float>() + offset, pairs.forecast.data_ptr<float>() + offset,
                         pairs.height, pairs.width, window.data(), scratch.data()});
      }
      ssim[i] = sum / positions;
    }
  });
  return out;
}

at::Tensor ssim_gauss11_plain(const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check(truth, forecast);
  const auto row = ssim_window();
  const at::Tensor g = at::tensor(at::ArrayRef<double>(row.data(), row.size()));
  const at::Tensor window = at::outer(g, g).view({1, 1, ssim_taps, ssim_taps});
  const auto planes = [&](const at::Tensor& x) { return x.to(at::kDouble).view({-1, 1, pairs.height, pairs.width}); };
  const auto filter = [&](const at::Tensor& x) { return at::conv2d(x, window); };
  const at::Tensor x = planes(pairs.truth), y = planes(pairs.forecast);
  const at::Tensor mx = filter(x), my = filter(y);
  const at::Tensor sxx = filter(x * x) - mx * mx, syy = filter(y * y) - my * my, sxy = filter(x * y) - mx * my;
  const at::Tensor map =
      (2 * mx * my + ssim_c1) * (2 * sxy + ssim_c2) / ((mx * mx + my * my + ssim_c1) * (sxx + syy + ssim_c2));
  return map.view({pairs.frames, -1}).mean(1).view(pairs.leading);
}

bool large_enough_for_ssim(const at::Tensor& frames) {
  return frames.size(-1) >= ssim_taps && frames.size(-2) >= ssim_taps;
}

}  // namespace convssm::metrics
