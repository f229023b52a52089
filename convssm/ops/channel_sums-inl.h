// Sums over the pixels of a frame for a range of its channels, included once per instruction set (no #pragma once:
// Highway's toggle below lets the file be read again for each of them).
#if defined(CONVSSM_OPS_CHANNEL_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVSSM_OPS_CHANNEL_SUMS_INL
#undef CONVSSM_OPS_CHANNEL_SUMS_INL
#else
#define CONVSSM_OPS_CHANNEL_SUMS_INL
#endif

#include <algorithm>

#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// sums[c] for c in [c0,c1): the values term(d, pixel, c) of all pixels, in short runs of float32, collected in double.
template <class Term>
HWY_INLINE void channel_range_sums(int64_t pixels, int64_t c0, int64_t c1, double* sums, const Term& term) {
  constexpr int64_t kRun = 32;
  std::fill(sums + c0, sums + c1, 0.0);
  for (int64_t first = 0; first < pixels; first += kRun) {
    const int64_t end = std::min(pixels, first + kRun);
    for_channels<float>(c1 - c0, [&](auto d, int64_t i) HWY_ATTR {
      const int64_t c = c0 + i;
      auto even = hn::Zero(d), odd = hn::Zero(d);
      int64_t p = first;
      for (; p + 1 < end; p += 2) {
        even = hn::Add(even, term(d, p, c));
        odd = hn::Add(odd, term(d, p + 1, c));
      }
      if (p < end) even = hn::Add(even, term(d, p, c));
      HWY_ALIGN float run[HWY_MAX_BYTES / sizeof(float)];
      hn::Store(hn::Add(even, odd), d, run);
      for (size_t k = 0; k < hn::Lanes(d); ++k) sums[c + static_cast<int64_t>(k)] += static_cast<double>(run[k]);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
