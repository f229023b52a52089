// SSIM of one channel of one frame. Raw pointers only; checked by the caller.
#pragma once

#include <array>
#include <cstdint>

namespace convssm::metrics {

constexpr double ssim_c1 = 0.01 * 0.01;
constexpr double ssim_c2 = 0.03 * 0.03;
constexpr int64_t ssim_max_taps = 11;

// A window of taps x taps: the product of this row and this column, sum 1.
struct SsimWindow {
  int64_t taps;  // 7 or 11
  std::array<double, ssim_max_taps> weights;
  double variance_factor;  // 1, or n/(n-1) for the unbiased variance
};

SsimWindow gauss11_window();  // exp(-i^2 / (2 1.5^2)), i = -5 ... 5
SsimWindow uniform7_window();

struct SsimPlane {
  const float* x;  // [height,width]
  const float* y;
  int64_t height, width;
  const SsimWindow* window;
  double* scratch;  // ssim_scratch(window, width) numbers
};

int64_t ssim_scratch(const SsimWindow& window, int64_t width);

// The sum over all positions; there are (height - taps + 1) * (width - taps + 1).
double ssim_sum(const SsimPlane& plane);

}  // namespace convssm::metrics
