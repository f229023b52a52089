// Compiled once per instruction set by Highway; the best one is picked at run time. Pixel by pixel with the channels
// innermost, as they lie in memory: per-channel factors are a row that stays in the first-level cache. (Means sums over
// pixels: channel_sums-inl.h.) Threads are the caller's: it hands in ranges of rows.
#include "convssm/ops/frame_kernels.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/frame_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/channel_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

void Pool2(const PoolRows& r) {
  const int64_t C = r.channels, line = 2 * r.width * C;
  for (int64_t i = r.y0; i < r.y1; ++i) {
    for (int64_t j = 0; j < r.width; ++j) {
      const float* above = r.x + 2 * i * line + 2 * j * C;
      const float* below = above + line;
      float* out = r.out + (i * r.width + j) * C;
      for_channels<float>(C, [&](auto d, int64_t c) HWY_ATTR {
        const auto first = hn::Add(hn::LoadU(d, above + c), hn::LoadU(d, above + C + c));
        const auto second = hn::Add(hn::LoadU(d, below + c), hn::LoadU(d, below + C + c));
        hn::StoreU(hn::Mul(hn::Add(first, second), hn::Set(d, 0.25f)), d, out + c);
      });
    }
  }
}

void Means(const MeanRange& r) {
  channel_range_sums(r.pixels, r.c0, r.c1, r.sums,
                     [&](auto d, int64_t p, int64_t c) HWY_ATTR { return hn::LoadU(d, r.x + p * r.channels + c); });
  for (int64_t c = r.c0; c < r.c1; ++c) r.means[c] = static_cast<float>(r.sums[c] / static_cast<double>(r.pixels));
}

void Scale(const ScaleRows& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    float* x = r.x + row * r.channels;
    for_channels<float>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      auto value = hn::LoadU(d, x + c);
      if (r.factor != nullptr) value = hn::Mul(value, hn::LoadU(d, r.factor + c));
      if (r.offset != nullptr) value = hn::Add(value, hn::LoadU(d, r.offset + c));
      hn::StoreU(value, d, x + c);
    });
  }
}

void Gate(const float* x, const float* gate, float* out, int64_t size) {
  for_channels<float>(size, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), sigmoid(d, hn::LoadU(d, gate + i))), d, out + i);
  });
}

void TanhLoop(const float* x, float* out, int64_t size) {
  for_channels<float>(size, [&](auto d, int64_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i), y = hn::Tanh(d, value);
    const auto cut = hn::Min(hn::Max(y, hn::Set(d, -1.0f)), hn::Set(d, 1.0f));
    hn::StoreU(hn::IfThenElse(hn::Eq(value, value), cut, value), d, out + i);  // NaN stays NaN
  });
}

void GruReset(const GruRows& r) {
  const int64_t P = r.states;
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* u = r.from_u + row * 3 * P + P;
    const float* zr = r.zr_from_h + row * 2 * P + P;
    for_channels<float>(P, [&](auto d, int64_t p) HWY_ATTR {
      const auto gate = sigmoid(d, hn::Add(hn::LoadU(d, u + p), hn::LoadU(d, zr + p)));
      hn::StoreU(hn::Mul(gate, hn::LoadU(d, r.h + row * P + p)), d, r.reset + row * P + p);
    });
  }
}

void GruUpdate(const GruRows& r) {
  const int64_t P = r.states;
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* u = r.from_u + row * 3 * P;
    const float* zr = r.zr_from_h + row * 2 * P;
    float* state = r.h + row * P;
    for_channels<float>(P, [&](auto d, int64_t p) HWY_ATTR {
      const auto z = sigmoid(d, hn::Add(hn::LoadU(d, u + p), hn::LoadU(d, zr + p)));
      const auto n = hn::Add(hn::LoadU(d, u + 2 * P + p), hn::LoadU(d, r.n_from_h + row * P + p));
      const auto h = hn::LoadU(d, state + p);
      hn::StoreU(hn::MulAdd(z, hn::Sub(hn::Tanh(d, n), h), h), d, state + p);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Pool2);
HWY_EXPORT(Means);
HWY_EXPORT(Scale);
HWY_EXPORT(Gate);
HWY_EXPORT(TanhLoop);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruUpdate);

void pool2_rows(const PoolRows& rows) { HWY_DYNAMIC_DISPATCH(Pool2)(rows); }
void channel_means(const MeanRange& range) { HWY_DYNAMIC_DISPATCH(Means)(range); }
void scale_rows(const ScaleRows& rows) { HWY_DYNAMIC_DISPATCH(Scale)(rows); }
void gate_loop(const float* x, const float* gate, float* out, int64_t size) {
  HWY_DYNAMIC_DISPATCH(Gate)(x, gate, out, size);
}
void tanh_loop(const float* x, float* out, int64_t size) { HWY_DYNAMIC_DISPATCH(TanhLoop)(x, out, size); }
void gru_reset_rows(const GruRows& rows) { HWY_DYNAMIC_DISPATCH(GruReset)(rows); }
void gru_update_rows(const GruRows& rows) { HWY_DYNAMIC_DISPATCH(GruUpdate)(rows); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
