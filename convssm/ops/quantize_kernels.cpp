// Compiled once per instruction set by Highway; the best one is picked at run time. Values are cut to [0,255] while
// they are still float: beyond the range of int32 a conversion gives no useful number.
#include "convssm/ops/quantize_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/quantize_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

void Quantize(const QuantizeRows& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* x = r.x + row * r.channels;
    uint8_t* out = r.out + row * r.channels;
    for_channels<float>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      const hn::Rebind<uint8_t, decltype(d)> bytes;
      const auto scaled = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, r.factor + c), hn::LoadU(d, r.offset + c));
      const auto cut = hn::Min(hn::Max(scaled, hn::Zero(d)), hn::Set(d, 255.0f));
      hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(cut)), bytes, out + c);
    });
  }
}

void Widen(const RangeRows& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* x = r.x + row * r.channels;
    for_channels<float>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      const auto value = hn::LoadU(d, x + c);
      hn::StoreU(hn::Min(hn::LoadU(d, r.low + c), value), d, r.low + c);
      hn::StoreU(hn::Max(hn::LoadU(d, r.high + c), value), d, r.high + c);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Quantize);
HWY_EXPORT(Widen);

void quantize_rows(const QuantizeRows& rows) { HWY_DYNAMIC_DISPATCH(Quantize)(rows); }
void widen_range(const RangeRows& rows) { HWY_DYNAMIC_DISPATCH(Widen)(rows); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
