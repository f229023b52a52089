// Compiled once per instruction set by Highway; the best one is picked at run time.
// The window is separable: each row of the frame is filtered once along x into a ring of 11 rows, and the ring along y.
// Four maps are enough: x, y, xy and x^2 + y^2, since the two variances only appear as their sum.
#include "convssm/metrics/ssim_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/metrics/ssim_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::metrics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kMaps = 4;

// line [4,width]: x, y, xy and x^2 + y^2 of one row.
void products(const float* x, const float* y, int64_t width, double* line) {
  ops::HWY_NAMESPACE::for_channels<double>(width, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d)> narrow;
    const auto a = hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(narrow, y + i));
    hn::StoreU(a, d, line + i);
    hn::StoreU(b, d, line + width + i);
    hn::StoreU(hn::Mul(a, b), d, line + 2 * width + i);
    hn::StoreU(hn::MulAdd(a, a, hn::Mul(b, b)), d, line + 3 * width + i);
  });
}

// line [4,width] -> out [4,width - 10], filtered along x.
void filter_line(const SsimPlane& p, const double* line, double* out) {
  const int64_t inner = p.width - ssim_taps + 1;
  for (int64_t map = 0; map < kMaps; ++map) {
    const double* in = line + map * p.width;
    ops::HWY_NAMESPACE::for_channels<double>(inner, [&](auto d, int64_t i) HWY_ATTR {
      auto sum = hn::Mul(hn::Set(d, p.window[0]), hn::LoadU(d, in + i));
      for (int64_t k = 1; k < ssim_taps; ++k) {
        sum = hn::MulAdd(hn::Set(d, p.window[k]), hn::LoadU(d, in + i + k), sum);
      }
      hn::StoreU(sum, d, out + map * inner + i);
    });
  }
}

// The four means at one row of positions, then SSIM; `rows` are the 11 filtered lines from the top down.
double sum_of_positions(const SsimPlane& p, const double* const* rows) {
  const int64_t inner = p.width - ssim_taps + 1;
  double total = 0;
  ops::HWY_NAMESPACE::for_channels<double>(inner, [&](auto d, int64_t i) HWY_ATTR {
    auto mx = hn::Zero(d), my = hn::Zero(d), xy = hn::Zero(d), squares = hn::Zero(d);
    for (int64_t k = 0; k < ssim_taps; ++k) {
      const auto weight = hn::Set(d, p.window[k]);
      const double* row = rows[k] + i;
      mx = hn::MulAdd(weight, hn::LoadU(d, row), mx);
      my = hn::MulAdd(weight, hn::LoadU(d, row + inner), my);
      xy = hn::MulAdd(weight, hn::LoadU(d, row + 2 * inner), xy);
      squares = hn::MulAdd(weight, hn::LoadU(d, row + 3 * inner), squares);
    }
    const auto two = hn::Set(d, 2.0), c1 = hn::Set(d, ssim_c1), c2 = hn::Set(d, ssim_c2);
    const auto mxy = hn::Mul(mx, my), means = hn::MulAdd(mx, mx, hn::Mul(my, my));
    const auto above = hn::Mul(hn::MulAdd(two, mxy, c1), hn::MulAdd(two, hn::Sub(xy, mxy), c2));
    const auto below = hn::Mul(hn::Add(means, c1), hn::Add(hn::Sub(squares, means), c2));
    total += hn::GetLane(hn::SumOfLanes(d, hn::Div(above, below)));
  });
  return total;
}

double SsimSum(const SsimPlane& p) {
  const int64_t inner = p.width - ssim_taps + 1;
  double* line = p.scratch;
  double* ring = line + kMaps * p.width;
  const auto filtered = [&](int64_t row) { return ring + row % ssim_taps * kMaps * inner; };
  double total = 0;
  for (int64_t row = 0; row < p.height; ++row) {
    products(p.x + row * p.width, p.y + row * p.width, p.width, line);
    filter_line(p, line, filtered(row));
    if (row < ssim_taps - 1) continue;
    const double* rows[ssim_taps];
    for (int64_t k = 0; k < ssim_taps; ++k) rows[k] = filtered(row - ssim_taps + 1 + k);
    total += sum_of_positions(p, rows);
  }
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::metrics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::metrics {

HWY_EXPORT(SsimSum);

std::array<double, ssim_taps> ssim_window() {
  std::array<double, ssim_taps> window{};
  double sum = 0;
  for (int64_t i = 0; i < ssim_taps; ++i) {
    const double z = static_cast<double>(i - ssim_taps / 2) / 1.5;
    sum += window[static_cast<size_t>(i)] = std::exp(-0.5 * z * z);
  }
  for (double& weight : window) weight /= sum;
  return window;
}

int64_t ssim_scratch(int64_t width) { return 4 * (width + ssim_taps * (width - ssim_taps + 1)); }

double ssim_sum(const SsimPlane& plane) { return HWY_DYNAMIC_DISPATCH(SsimSum)(plane); }

}  // namespace convssm::metrics
#endif  // HWY_ONCE
