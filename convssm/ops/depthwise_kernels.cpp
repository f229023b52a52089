// Compiled once per instruction set by Highway; the best one is picked at run time. Four vectors of channels of one pixel are
// summed in registers over the taps that lie inside the frame, so borders cost nothing and need no padding; four sums
// hide the latency of a multiply-add. Channels that are left over go by single vectors, then by single values.
#include "convssm/ops/depthwise_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/depthwise_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Taps {  // of one pixel: kernel rows [h0,h1) and columns [w0,w1)
  int64_t h0, h1, w0, w1;
};

// Sums of the channels at c, `Vectors` vectors of them. `first` is the pixel under the first tap of the kernel, which may lie
// outside of the frame and is then not read.
template <int Vectors, class D>
HWY_INLINE void Pixel(D d, const DepthwiseRows& r, const Taps& taps, int64_t first, int64_t c, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), C = r.channels;
  hn::Vec<D> sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  if (r.bias != nullptr) {
    sum0 = hn::LoadU(d, r.bias + c);
    if constexpr (Vectors == 4) {
      sum1 = hn::LoadU(d, r.bias + c + lanes);
      sum2 = hn::LoadU(d, r.bias + c + 2 * lanes);
      sum3 = hn::LoadU(d, r.bias + c + 3 * lanes);
    }
  }
  for (int64_t i = taps.h0; i < taps.h1; ++i) {
    for (int64_t j = taps.w0; j < taps.w1; ++j) {
      const float* x = r.x + (first + i * r.width + j) * C + c;
      const float* w = r.weight + (i * r.kernel_w + j) * C + c;
      sum0 = hn::MulAdd(hn::LoadU(d, x), hn::LoadU(d, w), sum0);
      if constexpr (Vectors == 4) {
        sum1 = hn::MulAdd(hn::LoadU(d, x + lanes), hn::LoadU(d, w + lanes), sum1);
        sum2 = hn::MulAdd(hn::LoadU(d, x + 2 * lanes), hn::LoadU(d, w + 2 * lanes), sum2);
        sum3 = hn::MulAdd(hn::LoadU(d, x + 3 * lanes), hn::LoadU(d, w + 3 * lanes), sum3);
      }
    }
  }
  hn::StoreU(sum0, d, out + c);
  if constexpr (Vectors == 4) {
    hn::StoreU(sum1, d, out + c + lanes);
    hn::StoreU(sum2, d, out + c + 2 * lanes);
    hn::StoreU(sum3, d, out + c + 3 * lanes);
  }
}

void Rows(const DepthwiseRows& r) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), top = r.kernel_h / 2, left = r.kernel_w / 2;
  for (int64_t y = r.y0; y < r.y1; ++y) {
    for (int64_t x = 0; x < r.width; ++x) {
      const Taps taps{std::max<int64_t>(top - y, 0), std::min(r.kernel_h, r.height + top - y),
                      std::max<int64_t>(left - x, 0), std::min(r.kernel_w, r.width + left - x)};
      const int64_t first = (y - top) * r.width + x - left;
      float* out = r.out + (y * r.width + x) * r.channels;
      int64_t c = 0;
      for (; c + 4 * lanes <= r.channels; c += 4 * lanes) Pixel<4>(d, r, taps, first, c, out);
      for (; c + lanes <= r.channels; c += lanes) Pixel<1>(d, r, taps, first, c, out);
      for (; c < r.channels; ++c) Pixel<1>(one, r, taps, first, c, out);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Rows);

void depthwise_rows(const DepthwiseRows& rows) { HWY_DYNAMIC_DISPATCH(Rows)(rows); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
