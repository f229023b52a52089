// SSIM of one channel of one frame. Raw pointers only; checked by the caller.
#pragma once

#include <array>
#include <cstdint>

namespace convssm::metrics {

constexpr int64_t ssim_taps = 11;
constexpr double ssim_c1 = 0.01 * 0.01;
constexpr double ssim_c2 = 0.03 * 0.03;

// The Gaussian window is the product of this row and this column: exp(-i^2 / (2 1.5^2)), i = -5 ... 5, sum 1.
std::array<double, ssim_taps> ssim_window();

struct SsimPlane {
  const float* x;  // [height,width]
  const float* y;
  int64_t height, width;
  const double* window;  // [ssim_taps]
  double* scratch;       // ssim_scratch(width) numbers
};

int64_t ssim_scratch(int64_t width);

// The sum over all positions; there are (height - 10) * (width - 10).
double ssim_sum(const SsimPlane& plane);

}  // namespace convssm::metrics
