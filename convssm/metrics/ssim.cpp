// The fast version filters rows and columns with vectors (ssim_kernels.cpp), the plain one is the definition with 2-D
// convolutions; both in float64. The uniform window has unbiased variances (the factor n/(n-1)), as skimage has by
// default.
#include "convssm/metrics/ssim.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "convssm/metrics/frames.h"
#include "convssm/metrics/ssim_kernels.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

FramePairs check(const char* metric, const SsimWindow& window, const at::Tensor& truth, const at::Tensor& forecast) {
  FramePairs pairs = check_f01_frames(metric, truth, forecast);
  ops::require(metric, pairs.height >= window.taps && pairs.width >= window.taps,
               "frames must be at least {0}x{0}, the size of the window, got {1}x{2}", window.taps, pairs.height,
               pairs.width);
  return pairs;
}

at::Tensor ssim(const FramePairs& pairs, const SsimWindow& window) {
  const double positions =
      static_cast<double>(pairs.channels * (pairs.height - window.taps + 1) * (pairs.width - window.taps + 1));
  at::Tensor out = at::empty(pairs.leading, at::kDouble);
  double* ssim = out.data_ptr<double>();
  at::parallel_for(0, pairs.frames, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(static_cast<size_t>(ssim_scratch(window, pairs.width)));
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < pairs.channels; ++c) {
        const int64_t offset = i * pairs.frame() + c * pairs.plane();
        sum += ssim_sum({pairs.truth.data_ptr<float>() + offset, pairs.forecast.data_ptr<float>() + offset,
                         pairs.height, pairs.width, &window, scratch.data()});
      }
      ssim[i] = sum / positions;
    }
  });
  return out;
}

at::Tensor ssim_plain(const FramePairs& pairs, const SsimWindow& row) {
  const at::Tensor g = at::tensor(at::ArrayRef<double>(row.weights.data(), static_cast<size_t>(row.taps)));
  const at::Tensor window = at::outer(g, g).view({1, 1, row.taps, row.taps});
  const auto planes = [&](const at::Tensor& x) { return x.to(at::kDouble).view({-1, 1, pairs.height, pairs.width}); };
  const auto filter = [&](const at::Tensor& x) { return at::conv2d(x, window); };
  const at::Tensor x = planes(pairs.truth), y = planes(pairs.forecast);
  const at::Tensor mx = filter(x), my = filter(y);
  const double f = row.variance_factor;
  const at::Tensor sxx = f * (filter(x * x) - mx * mx), syy = f * (filter(y * y) - my * my);
  const at::Tensor sxy = f * (filter(x * y) - mx * my);
  const at::Tensor map =
      (2 * mx * my + ssim_c1) * (2 * sxy + ssim_c2) / ((mx * mx + my * my + ssim_c1) * (sxx + syy + ssim_c2));
  return map.view({pairs.frames, -1}).mean(1).view(pairs.leading);
}

}  // namespace

at::Tensor ssim_gauss11(const at::Tensor& truth, const at::Tensor& forecast) {
  const SsimWindow window = gauss11_window();
  return ssim(check("ssim_gauss11", window, truth, forecast), window);
}

at::Tensor ssim_uniform7(const at::Tensor& truth, const at::Tensor& forecast) {
  const SsimWindow window = uniform7_window();
  return ssim(check("ssim_uniform7", window, truth, forecast), window);
}

at::Tensor ssim_gauss11_plain(const at::Tensor& truth, const at::Tensor& forecast) {
  const SsimWindow window = gauss11_window();
  return ssim_plain(check("ssim_gauss11", window, truth, forecast), window);
}

at::Tensor ssim_uniform7_plain(const at::Tensor& truth, const at::Tensor& forecast) {
  const SsimWindow window = uniform7_window();
  return ssim_plain(check("ssim_uniform7", window, truth, forecast), window);
}

}  // namespace convssm::metrics
