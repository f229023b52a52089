// The transforms of Winograd's F(4x4,3x3) for the points 0, +-a, +-b and infinity, included once per instruction set
// (no #pragma once: Highway's toggle below lets the file be read again for each of them).
#if defined(CONVSSM_OPS_WINOGRAD_TRANSFORMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVSSM_OPS_WINOGRAD_TRANSFORMS_INL
#undef CONVSSM_OPS_WINOGRAD_TRANSFORMS_INL
#else
#define CONVSSM_OPS_WINOGRAD_TRANSFORMS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "convssm/ops/activation-inl.h"
#include "convssm/ops/winograd_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }
HWY_INLINE Vec value(float x) { return hn::Set(Tag(), x); }

struct BalancedPoints {  // 1/sqrt(2) and sqrt(2): the smallest rounding errors
  static constexpr float a = 0.70710678118654752f, a2 = 0.5f, a3 = 0.35355339059327376f;
  static constexpr float b = 1.41421356237309505f, b2 = 2, b3 = 2.82842712474619010f;
};

struct WholePoints {  // whole numbers stay whole numbers
  static constexpr float a = 1, a2 = 1, a3 = 1;
  static constexpr float b = 2, b2 = 4, b3 = 8;
};

// The one-dimensional transforms read their vectors through `from(i)` and give them to `to(i, vector)`. The points come
// in pairs +p and -p, whose rows differ only in the sign of the odd part: even and odd parts are computed once per pair
// and added and subtracted. 12 multiply-adds turn 6 vectors into 6 (B^T), 12 operations turn 6 into 4 (A^T); inputs,
// parts and constants fit the 16 registers of AVX2.
template <class P>
struct InputTransform {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    constexpr float product = P::a2 * P::b2, sum = P::a2 + P::b2;
    const Vec x0 = from(0), x1 = from(1), x2 = from(2), x3 = from(3), x4 = from(4), x5 = from(5);
    to(0, hn::MulAdd(value(product), x0, hn::NegMulAdd(value(sum), x2, x4)));
    const Vec even = hn::NegMulAdd(value(P::b2), x2, x4), odd = hn::NegMulAdd(value(P::b2), x1, x3);
    to(1, hn::MulAdd(value(P::a), odd, even));
    to(2, hn::NegMulAdd(value(P::a), odd, even));
    const Vec even2 = hn::NegMulAdd(value(P::a2), x2, x4), odd2 = hn::NegMulAdd(value(P::a2), x1, x3);
    to(3, hn::MulAdd(value(P::b), odd2, even2));
    to(4, hn::NegMulAdd(value(P::b), odd2, even2));
    to(5, hn::MulAdd(value(product), x1, hn::NegMulAdd(value(sum), x3, x5)));
  }
};

template <class P>
struct OutputTransform {  // A^T
  static constexpr int kFrom = 6, kTo = 4;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec m1 = from(1), m2 = from(2), m3 = from(3), m4 = from(4);
    const Vec sum = hn::Add(m1, m2), difference = hn::Sub(m1, m2);
    const Vec sum2 = hn::Add(m3, m4), difference2 = hn::Sub(m3, m4);
    to(0, hn::Add(hn::Add(from(0), sum), sum2));
    to(1, hn::MulAdd(value(P::b), difference2, hn::Mul(value(P::a), difference)));
    to(2, hn::MulAdd(value(P::b2), sum2, hn::Mul(value(P::a2), sum)));
    to(3, hn::MulAdd(value(P::b3), difference2, hn::MulAdd(value(P::a3), difference, from(5))));
  }
};

template <class P>
struct OutputGradientTransform {  // A
  static constexpr int kFrom = 4, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec g0 = from(0), g1 = from(1), g2 = from(2), g3 = from(3);
    to(0, g0);
    const Vec even = hn::MulAdd(value(P::a2), g2, g0), odd = hn::MulAdd(value(P::a3), g3, hn::Mul(value(P::a), g1));
    to(1, hn::Add(even, odd));
    to(2, hn::Sub(even, odd));
    const Vec even2 = hn::MulAdd(value(P::b2), g2, g0), odd2 = hn::MulAdd(value(P::b3), g3, hn::Mul(value(P::b), g1));
    to(3, hn::Add(even2, odd2));
    to(4, hn::Sub(even2, odd2));
    to(5, g3);
  }
};

template <class P>
struct WeightScale {  // 1 / M'(point) with M(x) = x (x^2 - a^2) (x^2 - b^2)
  static constexpr float zero = 1 / (P::a2 * P::b2);
  static constexpr float at_a = 1 / (2 * P::a2 * (P::a2 - P::b2)), at_b = 1 / (2 * P::b2 * (P::b2 - P::a2));
};

template <class P>
struct WeightTransform {  // G
  static constexpr int kFrom = 3, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    using Scale = WeightScale<P>;
    const Vec w0 = from(0), w1 = from(1), w2 = from(2);
    to(0, hn::Mul(value(Scale::zero), w0));
    const Vec even = hn::Mul(value(Scale::at_a), hn::MulAdd(value(P::a2), w2, w0));
    to(1, hn::MulAdd(value(P::a * Scale::at_a), w1, even));
    to(2, hn::NegMulAdd(value(P::a * Scale::at_a), w1, even));
    const Vec even2 = hn::Mul(value(Scale::at_b), hn::MulAdd(value(P::b2), w2, w0));
    to(3, hn::MulAdd(value(P::b * Scale::at_b), w1, even2));
    to(4, hn::NegMulAdd(value(P::b * Scale::at_b), w1, even2));
    to(5, w2);
  }
};

template <class P>
struct WeightGradientTransform {  // G^T
  static constexpr int kFrom = 6, kTo = 3;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    using Scale = WeightScale<P>;
    const Vec m1 = from(1), m2 = from(2), m3 = from(3), m4 = from(4);
    const Vec sum = hn::Mul(value(Scale::at_a), hn::Add(m1, m2)), sum2 = hn::Mul(value(Scale::at_b), hn::Add(m3, m4));
    to(0, hn::MulAdd(value(Scale::zero), from(0), hn::Add(sum, sum2)));
    to(1, hn::MulAdd(value(P::b * Scale::at_b), hn::Sub(m3, m4), hn::Mul(value(P::a * Scale::at_a), hn::Sub(m1, m2))));
    to(2, hn::MulAdd(value(P::a2), sum, hn::MulAdd(value(P::b2), sum2, from(5))));
  }
};

// Both axes: from(row, column) -> to(row, column, vector). First down the columns, then along the rows of the result.
// The up to 36 vectors between the two passes are more than there are registers (16, or 32 of AVX-512), so they go
// through an array on the stack, 1152 bytes on AVX2, which never leaves the first-level cache. Loops are of constant
// size, so that the compiler can unroll them.
template <class Transform, class From, class To>
HWY_INLINE void transform(const From& from, const To& to) {
  const Tag d;
  HWY_ALIGN float kept[Transform::kTo * Transform::kFrom * HWY_MAX_BYTES / sizeof(float)];
  const auto at = [&](int row, int column) HWY_ATTR { return kept + (row * Transform::kFrom + column) * lanes(); };
  for (int column = 0; column < Transform::kFrom; ++column) {
    Transform::apply([&](int row) HWY_ATTR { return from(row, column); },
                     [&](int row, Vec v) HWY_ATTR { hn::Store(v, d, at(row, column)); });
  }
  for (int row = 0; row < Transform::kTo; ++row) {
    Transform::apply([&](int column) HWY_ATTR { return hn::Load(d, at(row, column)); },
                     [&](int column, Vec v) HWY_ATTR { to(row, column, v); });
  }
}

// Position of a tile's first output.
struct TileOrigin {
  int64_t frame, row, column;
  TileOrigin(const WinogradFrames& f, int64_t tile) {
    const int64_t columns = f.tile_columns(), per_frame = f.tile_rows() * columns, in_frame = tile % per_frame;
    frame = tile / per_frame;
    row = in_frame / columns * kWinogradTile;
    column = in_frame % columns * kWinogradTile;
  }
  int64_t pixel(const WinogradFrames& f, int64_t r, int64_t c) const {
    return ((frame * f.height + row + r) * f.width + column + c) * f.channels;
  }
  bool inside(const WinogradFrames& f, int64_t r, int64_t c) const {
    return row + r >= 0 && row + r < f.height && column + c >= 0 && column + c < f.width;
  }
};

// A^T m A of the tiles first..end with the epilogue; m in rows. Loops: tiles, then vectors of channels: 36 loads, one
// per position, the transform, and for each of the 16 outputs that lie inside the frame bias, sum and activation while
// it is in a register, then one store. Outputs beyond the edge of the frame are computed and dropped.
template <class P, Activation activation>
HWY_INLINE void output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end,
                       const WinogradEpilogue& e, float* y) {
  const Tag d;
  for (int64_t tile = first; tile < end; ++tile) {
    const TileOrigin origin(f, tile);
    const float* products = m.data + (tile - first) * m.tile_stride;
    for (int64_t channel = 0; channel < f.channels; channel += lanes()) {
      const Vec bias = e.bias != nullptr ? hn::LoadU(d, e.bias + channel) : hn::Zero(d);
      transform<OutputTransform<P>>(
          [&](int r, int c) HWY_ATTR { return hn::LoadU(d, products + (r * 6 + c) * m.position_stride + channel); },
          [&](int r, int c, Vec v) HWY_ATTR {
            if (!origin.inside(f, r, c)) return;
            const int64_t at = origin.pixel(f, r, c) + channel;
            v = hn::Add(v, bias);
            if (e.add != nullptr) v = hn::Add(v, hn::LoadU(d, e.add + at));
            hn::StoreU(activation_value<activation>(d, v), d, y + at);
          });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
