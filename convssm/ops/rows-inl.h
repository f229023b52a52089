// Loops over the channels of a row, included once per instruction set (no #pragma once: Highway's toggle below lets the
// file be read again for each of them).
#if defined(CONVSSM_OPS_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVSSM_OPS_ROWS_INL
#undef CONVSSM_OPS_ROWS_INL
#else
#define CONVSSM_OPS_ROWS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// step(tag, c) for whole vectors of channels, then for single ones at the end.
template <typename T, class Step>
HWY_INLINE void for_channels(int64_t channels, const Step& step) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) step(d, c);
  for (; c < channels; ++c) step(one, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
