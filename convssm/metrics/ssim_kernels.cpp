// Compiled once per instruction set by Highway; the best one is picked at run time.
// The window is separable: each row of the frame is filtered once along x into a ring of rows, and the ring along y.
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

// line [4,width] -> out [4,width - Taps + 1], filtered along x.
template <int64_t Taps>
void filter_line(const SsimPlane& p, const double* line, double* out) {
  const double* weights = p.window->weights.data();
  const int64_t inner = p.width - Taps + 1;
  for (int64_t map = 0; map < kMaps; ++map) {
    const double* in = line + map * p.width;
    ops::HWY_NAMESPACE::for_channels<double>(inner, [&](auto d, int64_t i) HWY_ATTR {
      auto sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, in + i));
      for (int64_t k = 1; k < Taps; ++k) {
        sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, in + i + k), sum);
      }
      hn::StoreU(sum, d, out + map * inner + i);
    });
  }
}

// The four means at one row of positions, then SSIM; `rows` are the filtered lines from the top down.
template <int64_t Taps>
double sum_of_positions(const SsimPlane& p, const double* const* rows) {
  const double* weights = p.window->weights.data();
  const int64_t inner = p.width - Taps + 1;
  double total = 0;
  ops::HWY_NAMESPACE::for_channels<double>(inner, [&](auto d, int64_t i) HWY_ATTR {
    auto mx = hn::Zero(d), my = hn::Zero(d), xy = hn::Zero(d), squares = hn::Zero(d);
    for (int64_t k = 0; k < Taps; ++k) {
      const auto weight = hn::Set(d, weights[k]);
      const double* row = rows[k] + i;
      mx = hn::MulAdd(weight, hn::LoadU(d, row), mx);
      my = hn::MulAdd(weight, hn::LoadU(d, row + inner), my);
      xy = hn::MulAdd(weight, hn::LoadU(d, row + 2 * inner), xy);
      squares = hn::MulAdd(weight, hn::LoadU(d, row + 3 * inner), squares);
    }
    const auto factor = hn::Set(d, p.window->variance_factor), twice = hn::Add(factor, factor);
    const auto two = hn::Set(d, 2.0), c1 = hn::Set(d, ssim_c1), c2 = hn::Set(d, ssim_c2);
    const auto mxy = hn::Mul(mx, my), means = hn::MulAdd(mx, mx, hn::Mul(my, my));
    const auto above = hn::Mul(hn::MulAdd(two, mxy, c1), hn::MulAdd(twice, hn::Sub(xy, mxy), c2));
    const auto below = hn::Mul(hn::Add(means, c1), hn::MulAdd(factor, hn::Sub(squares, means), c2));
    total += hn::GetLane(hn::SumOfLanes(d, hn::Div(above, below)));
  });
  return total;
}

template <int64_t Taps>
double sum_of_plane(const SsimPlane& p) {
  const int64_t inner = p.width - Taps + 1;
  double* line = p.scratch;
  double* ring = line + kMaps * p.width;
  const auto filtered = [&](int64_t row) { return ring + row % Taps * kMaps * inner; };
  double total = 0;
  for (int64_t row = 0; row < p.height; ++row) {
    products(p.x + row * p.width, p.y + row * p.width, p.width, line);
    filter_line<Taps>(p, line, filtered(row));
    if (row < Taps - 1) continue;
    const double* rows[Taps];
    for (int64_t k = 0; k < Taps; ++k) rows[k] = filtered(row - Taps + 1 + k);
    total += sum_of_positions<Taps>(p, rows);
  }
  return total;
}

double SsimSum(const SsimPlane& p) { return p.window->taps == 7 ? sum_of_plane<7>(p) : sum_of_plane<ssim_max_taps>(p); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::metrics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::metrics {

HWY_EXPORT(SsimSum);

SsimWindow gauss11_window() {
  SsimWindow window{11, {}, 1};
  double sum = 0;
  for (int64_t i = 0; i < window.taps; ++i) {
    const double z = static_cast<double>(i - window.taps / 2) / 1.5;
    sum += window.weights[static_cast<size_t>(i)] = std::exp(-0.5 * z * z);
  }
  for (double& weight : window.weights) weight /= sum;
  return window;
}

SsimWindow uniform7_window() {
  SsimWindow window{7, {}, 49.0 / 48.0};
  for (int64_t i = 0; i < window.taps; ++i) window.weights[static_cast<size_t>(i)] = 1.0 / 7;
  return window;
}

int64_t ssim_scratch(const SsimWindow& window, int64_t width) {
  return 4 * (width + window.taps * (width - window.taps + 1));
}

double ssim_sum(const SsimPlane& plane) { return HWY_DYNAMIC_DISPATCH(SsimSum)(plane); }

}  // namespace convssm::metrics
#endif  // HWY_ONCE
