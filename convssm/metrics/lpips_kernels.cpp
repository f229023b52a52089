// Compiled once per instruction set by Highway; the best one is picked at run time. A pixel's channels lie together and
// fit the first-level cache, so the two norms and the difference are three loops over them and no normalized features
// are ever stored. Sums over channels are in float32, over pixels in double.
#include "convssm/metrics/lpips_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/metrics/lpips_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::metrics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::for_channels;

// The sum of term(d, c) over the channels. The numbers of channels are multiples of a vector, so one loop is enough.
template <class Term>
HWY_INLINE float sum_over(int64_t channels, const Term& term) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) total = hn::Add(total, term(d, c));
  float sum = hn::GetLane(hn::SumOfLanes(d, total));
  for (; c < channels; ++c) sum += hn::GetLane(term(one, c));
  return sum;
}

HWY_INLINE float inverse_norm(const float* x, int64_t channels) {
  const float squares = sum_over(channels, [&](auto d, int64_t c) HWY_ATTR {
    const auto value = hn::LoadU(d, x + c);
    return hn::Mul(value, value);
  });
  return 1.0f / (std::sqrt(squares) + 1e-10f);
}

// x/|x| - y/|y| = (x - y |x|/|y|) / |x|, exactly zero for equal pixels. The difference is taken before it is squared:
// expanding the square would lose all digits for similar frames.
double LpipsSum(const LpipsFeatures& f) {
  double total = 0;
  for (int64_t pixel = 0; pixel < f.pixels; ++pixel) {
    const float* x = f.x + pixel * f.channels;
    const float* y = f.y + pixel * f.channels;
    const float of_x = inverse_norm(x, f.channels), ratio = inverse_norm(y, f.channels) / of_x;
    const float squares = sum_over(f.channels, [&](auto d, int64_t c) HWY_ATTR {
      const auto difference = hn::NegMulAdd(hn::LoadU(d, y + c), hn::Set(d, ratio), hn::LoadU(d, x + c));
      return hn::Mul(hn::LoadU(d, f.weight + c), hn::Mul(difference, difference));
    });
    total += static_cast<double>(squares) * static_cast<double>(of_x) * static_cast<double>(of_x);
  }
  return total;
}

void Pool(const MaxPool& p) {
  for (int64_t i = 0; i < p.out_height; ++i) {
    const int64_t rows = std::min(p.kernel, p.height - 2 * i);
    for (int64_t j = 0; j < p.out_width; ++j) {
      const int64_t columns = std::min(p.kernel, p.width - 2 * j);
      const float* window = p.x + (2 * i * p.width + 2 * j) * p.channels;
      float* out = p.out + (i * p.out_width + j) * p.channels;
      for_channels<float>(p.channels, [&](auto d, int64_t c) HWY_ATTR {
        auto most = hn::LoadU(d, window + c);
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = 0; column < columns; ++column) {
            most = hn::Max(most, hn::LoadU(d, window + (row * p.width + column) * p.channels + c));
          }
        }
        hn::StoreU(most, d, out + c);
      });
    }
  }
}

void Concat(const ReluConcat& r) {
  for (int64_t pixel = 0; pixel < r.pixels; ++pixel) {
    const float* first = r.first + pixel * r.channels;
    const float* second = r.second + pixel * r.channels;
    float* out = r.out + 2 * pixel * r.channels;
    for_channels<float>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(hn::Max(hn::LoadU(d, first + c), hn::Zero(d)), d, out + c);
      hn::StoreU(hn::Max(hn::LoadU(d, second + c), hn::Zero(d)), d, out + r.channels + c);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::metrics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::metrics {

HWY_EXPORT(LpipsSum);
HWY_EXPORT(Pool);
HWY_EXPORT(Concat);

double lpips_sum(const LpipsFeatures& features) { return HWY_DYNAMIC_DISPATCH(LpipsSum)(features); }

void max_pool(const MaxPool& pool) { HWY_DYNAMIC_DISPATCH(Pool)(pool); }

void relu_concat(const ReluConcat& concat) { HWY_DYNAMIC_DISPATCH(Concat)(concat); }

}  // namespace convssm::metrics
#endif  // HWY_ONCE
