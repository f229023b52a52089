// SSIM of a plane against its definition, position by position, on arrays of exactly their size.
#include "convssm/metrics/ssim_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::metrics {
namespace {

using namespace ops::testing;

// Weighted means, variances and covariance of one window.
double ssim_at(const SsimWindow& window, const float* x, const float* y, int64_t width) {
  double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
  for (int64_t i = 0; i < window.taps * window.taps; ++i) {
    const int64_t row = i / window.taps, column = i % window.taps;
    const double w = window.weights[static_cast<size_t>(row)] * window.weights[static_cast<size_t>(column)];
    const double a = static_cast<double>(x[row * width + column]), b = static_cast<double>(y[row * width + column]);
    mx += w * a;
    my += w * b;
    xx += w * a * a;
    yy += w * b * b;
    xy += w * a * b;
  }
  const double factor = window.variance_factor;
  const double vx = factor * (xx - mx * mx), vy = factor * (yy - my * my), cov = factor * (xy - mx * my);
  return (2 * mx * my + ssim_c1) * (2 * cov + ssim_c2) / ((mx * mx + my * my + ssim_c1) * (vx + vy + ssim_c2));
}

TEST(SsimKernels, SumOverAllPositions) {
  on_every_isa([] {
    for (const SsimWindow& window : {gauss11_window(), uniform7_window()}) {
      for (const int64_t more_rows : {0, 1, 4}) {
        for (const int64_t more_columns : {0, 1, 2, 3, 4, 7, 8, 9, 20}) {
          const int64_t height = window.taps + more_rows, width = window.taps + more_columns;
          const auto x = normals<float>(height * width, 1, 0.2, 0.5), y = normals<float>(height * width, 2, 0.2, 0.5);
          auto scratch = unwritten<double>(ssim_scratch(window, width));
          double expected = 0;
          for (int64_t i = 0; i <= more_rows; ++i) {
            for (int64_t j = 0; j <= more_columns; ++j) {
              expected += ssim_at(window, x.data() + i * width + j, y.data() + i * width + j, width);
            }
          }
          const double found = ssim_sum({x.data(), y.data(), height, width, &window, scratch.data()});
          EXPECT_NEAR(found, expected, 1e-11 * static_cast<double>((more_rows + 1) * (more_columns + 1))) << width;
        }
      }
    }
  });
}

}  // namespace
}  // namespace convssm::metrics
