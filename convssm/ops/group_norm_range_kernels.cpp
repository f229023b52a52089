// Compiled once per instruction set by Highway; the best one is picked at run time.
// For a batch of one: threads share a frame by its groups, so that none needs the sums of another. A thread's channels
// [c0,c1) are a stripe of every pixel's row. The stripe stays in the second-level cache over the three passes: sums,
// squares around the mean, result.
#include "convssm/ops/group_norm_range_kernels.h"

#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/group_norm_range_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/channel_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// The mean of the sums over each group's channels, to all of its channels.
template <typename Result>
void spread_means(const GroupNormRange& r, const Result& result) {
  const double count = static_cast<double>(r.group_width * r.pixels);
  for (int64_t first = r.c0; first < r.c1; first += r.group_width) {
    double total = 0;
    for (int64_t c = first; c < first + r.group_width; ++c) total += r.sums[c];
    for (int64_t c = first; c < first + r.group_width; ++c) result(c, total / count);
  }
}

// Two passes, mean and then squares around it: the range of one thread is small enough to stay in the cache, and no
// estimate of the mean is needed. channel_range_sums keeps two accumulators (even and odd pixels) of a vector of
// channels in registers over a run of 32 pixels and walks down the pixels, `channels` floats apart.
void statistics(const GroupNormRange& r) {
  channel_range_sums(r.pixels, r.c0, r.c1, r.sums,
                     [&](auto d, int64_t p, int64_t c) HWY_ATTR { return hn::LoadU(d, r.x + p * r.channels + c); });
  spread_means(r, [&](int64_t c, double mean) { r.means[c] = static_cast<float>(mean); });
  channel_range_sums(r.pixels, r.c0, r.c1, r.sums, [&](auto d, int64_t p, int64_t c) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, r.x + p * r.channels + c), hn::LoadU(d, r.means + c));
    return hn::Mul(centred, centred);
  });
  spread_means(r, [&](int64_t c, double variance) {
    r.scales[c] = static_cast<float>(static_cast<double>(r.weight[c]) / std::sqrt(variance + r.eps));
  });
}

// The third pass: pixel by pixel, the vectors of the range inside; factors per channel come from the first-level cache.
template <Activation activation>
void result(const GroupNormRange& r) {
  for (int64_t p = 0; p < r.pixels; ++p) {
    const float* x = r.x + p * r.channels;
    float* out = r.out + p * r.channels;
    for_channels<float>(r.c1 - r.c0, [&](auto d, int64_t i) HWY_ATTR {
      const int64_t c = r.c0 + i;
      const auto centred = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, r.means + c));
      const auto value = hn::MulAdd(centred, hn::LoadU(d, r.scales + c), hn::LoadU(d, r.bias + c));
      hn::StoreU(activation_value<activation>(d, value), d, out + c);
    });
  }
}

void GroupNorm(const GroupNormRange& r) {
  statistics(r);
  with_activation(r.activation, [&](auto activation) { result<activation()>(r); });
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(GroupNorm);

void group_norm_range(const GroupNormRange& range) { HWY_DYNAMIC_DISPATCH(GroupNorm)(range); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
