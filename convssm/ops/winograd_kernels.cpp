// Compiled once per instruction set by Highway; the best one is picked at run time.
#include "convssm/ops/winograd_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;    // the points
constexpr float kA3 = 0.35355339059327376f, kB3 = 2.82842712474619010f;  // their cubes

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }
HWY_INLINE Vec value(float x) { return hn::Set(Tag(), x); }

// The one-dimensional transforms read their vectors through `from(i)` and give them to `to(i, vector)`.
struct InputTransform {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec x0 = from(0), x1 = from(1), x2 = from(2), x3 = from(3), x4 = from(4), x5 = from(5);
    to(0, hn::Add(hn::NegMulAdd(value(2.5f), x2, x4), x0));
    const Vec even = hn::NegMulAdd(value(2), x2, x4), odd = hn::NegMulAdd(value(2), x1, x3);
    to(1, hn::MulAdd(value(kA), odd, even));
    to(2, hn::NegMulAdd(value(kA), odd, even));
    const Vec even2 = hn::NegMulAdd(value(0.5f), x2, x4), odd2 = hn::NegMulAdd(value(0.5f), x1, x3);
    to(3, hn::MulAdd(value(kB), odd2, even2));
    to(4, hn::NegMulAdd(value(kB), odd2, even2));
    to(5, hn::Add(hn::NegMulAdd(value(2.5f), x3, x5), x1));
  }
};

struct OutputTransform {  // A^T
  static constexpr int kFrom = 6, kTo = 4;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec m1 = from(1), m2 = from(2), m3 = from(3), m4 = from(4);
    const Vec sum = hn::Add(m1, m2), difference = hn::Sub(m1, m2);
    const Vec sum2 = hn::Add(m3, m4), difference2 = hn::Sub(m3, m4);
    to(0, hn::Add(hn::Add(from(0), sum), sum2));
    to(1, hn::MulAdd(value(kB), difference2, hn::Mul(value(kA), difference)));
    to(2, hn::MulAdd(value(2), sum2, hn::Mul(value(0.5f), sum)));
    to(3, hn::MulAdd(value(kB3), difference2, hn::MulAdd(value(kA3), difference, from(5))));
  }
};

struct OutputGradientTransform {  // A
  static constexpr int kFrom = 4, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec g0 = from(0), g1 = from(1), g2 = from(2), g3 = from(3);
    to(0, g0);
    const Vec even = hn::MulAdd(value(0.5f), g2, g0), odd = hn::MulAdd(value(kA3), g3, hn::Mul(value(kA), g1));
    to(1, hn::Add(even, odd));
    to(2, hn::Sub(even, odd));
    const Vec even2 = hn::MulAdd(value(2), g2, g0), odd2 = hn::MulAdd(value(kB3), g3, hn::Mul(value(kB), g1));
    to(3, hn::Add(even2, odd2));
    to(4, hn::Sub(even2, odd2));
    to(5, g3);
  }
};

struct WeightTransform {  // G
  static constexpr int kFrom = 3, kTo = 6;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec w0 = from(0), w1 = from(1), w2 = from(2);
    to(0, w0);
    const Vec even = hn::Mul(value(-1 / 1.5f), hn::MulAdd(value(0.5f), w2, w0));
    to(1, hn::MulAdd(value(-kA / 1.5f), w1, even));
    to(2, hn::MulAdd(value(kA / 1.5f), w1, even));
    const Vec even2 = hn::Mul(value(1 / 6.0f), hn::MulAdd(value(2), w2, w0));
    to(3, hn::MulAdd(value(kB / 6), w1, even2));
    to(4, hn::MulAdd(value(-kB / 6), w1, even2));
    to(5, w2);
  }
};

struct WeightGradientTransform {  // G^T
  static constexpr int kFrom = 6, kTo = 3;
  template <class From, class To>
  static HWY_INLINE void apply(const From& from, const To& to) {
    const Vec m1 = from(1), m2 = from(2), m3 = from(3), m4 = from(4);
    const Vec sum = hn::Mul(value(-1 / 1.5f), hn::Add(m1, m2)), sum2 = hn::Mul(value(1 / 6.0f), hn::Add(m3, m4));
    to(0, hn::Add(from(0), hn::Add(sum, sum2)));
    to(1, hn::MulAdd(value(kB / 6), hn::Sub(m3, m4), hn::Mul(value(-kA / 1.5f), hn::Sub(m1, m2))));
    to(2, hn::MulAdd(value(0.5f), sum, hn::MulAdd(value(2), sum2, from(5))));
  }
};

// Both axes: from(row, column) -> to(row, column, vector).
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

// Transforms the size x size pixels that begin `before` pixels above and left of each tile.
template <class Transform>
HWY_INLINE void transform_frames(const WinogradFrames& f, const float* x, int64_t first, int64_t end, int64_t before,
                                 const WinogradTiles& to) {
  const Tag d;
  constexpr int kSize = Transform::kFrom;
  for (int64_t tile = first; tile < end; ++tile) {
    const TileOrigin origin(f, tile);
    const float* pixels[kSize * kSize];
    for (int r = 0; r < kSize; ++r) {
      for (int c = 0; c < kSize; ++c) {
        const bool inside = origin.inside(f, r - before, c - before);
        pixels[r * kSize + c] = inside ? x + origin.pixel(f, r - before, c - before) : nullptr;
      }
    }
    float* out = to.data + (tile - first) * to.tile_stride;
    for (int64_t channel = 0; channel < f.channels; channel += lanes()) {
      float* panel = out + channel / to.panel * to.panel_stride + channel % to.panel;
      transform<Transform>(
          [&](int r, int c) HWY_ATTR {
            const float* pixel = pixels[r * kSize + c];
            return pixel != nullptr ? hn::LoadU(d, pixel + channel) : hn::Zero(d);
          },
          [&](int r, int c, Vec v) HWY_ATTR { hn::StoreU(v, d, panel + (r * 6 + c) * to.position_stride); });
    }
  }
}

void Input(const WinogradFrames& f, const float* x, int64_t first, int64_t end, const WinogradTiles& to) {
  transform_frames<InputTransform>(f, x, first, end, 1, to);
}

void OutputGradient(const WinogradFrames& f, const float* g, int64_t first, int64_t end, const WinogradTiles& to) {
  transform_frames<OutputGradientTransform>(f, g, first, end, 0, to);
}

template <Activation activation>
void output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end, const WinogradEpilogue& e,
            float* y) {
  const Tag d;
  for (int64_t tile = first; tile < end; ++tile) {
    const TileOrigin origin(f, tile);
    const float* products = m.data + (tile - first) * m.tile_stride;
    for (int64_t channel = 0; channel < f.channels; channel += lanes()) {
      const Vec bias = e.bias != nullptr ? hn::LoadU(d, e.bias + channel) : hn::Zero(d);
      transform<OutputTransform>(
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

void Output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end, const WinogradEpilogue& e,
            float* y) {
  with_activation(e.activation, [&](auto activation) HWY_ATTR { output<activation.value>(f, m, first, end, e, y); });
}

void PackPanel(const float* const* taps, int64_t in, int64_t out, int64_t panel, float* packed, int64_t stride) {
  const Tag d;
  const int64_t width = 2 * lanes();
  float* to = packed + panel * in * width;
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t c = 0; c < width; c += lanes()) {
      const int64_t o = panel * width + c;
      transform<WeightTransform>(
          [&](int r, int k) HWY_ATTR { return o < out ? hn::LoadU(d, taps[r * 3 + k] + i * out + o) : hn::Zero(d); },
          [&](int r, int k, Vec v) HWY_ATTR { hn::StoreU(v, d, to + (r * 6 + k) * stride + i * width + c); });
    }
  }
}

// kRows tiles times one panel of output channels.
template <int kRows>
HWY_INLINE void products_block(int64_t in, const float* HWY_RESTRICT v, const float* HWY_RESTRICT packed, float* m,
                               int64_t row) {
  const Tag d;
  Vec a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0, e0 = a0, e1 = a0, f0 = a0,
      f1 = a0;
  const int64_t width = 2 * lanes();
  for (int64_t k = 0; k < in; ++k) {
    const Vec w0 = hn::LoadU(d, packed + k * width), w1 = hn::LoadU(d, packed + k * width + lanes());
    const auto add = [&](int r, Vec& s0, Vec& s1) HWY_ATTR {
      if (r >= kRows) return;
      const Vec x = hn::Set(d, v[r * in + k]);
      s0 = hn::MulAdd(x, w0, s0);
      s1 = hn::MulAdd(x, w1, s1);
    };
    add(0, a0, a1);
    add(1, b0, b1);
    add(2, c0, c1);
    add(3, d0, d1);
    add(4, e0, e1);
    add(5, f0, f1);
  }
  const auto store = [&](int r, Vec s0, Vec s1) HWY_ATTR {
    if (r >= kRows) return;
    hn::StoreU(s0, d, m + r * row);
    hn::StoreU(s1, d, m + r * row + lanes());
  };
  store(0, a0, a1);
  store(1, b0, b1);
  store(2, c0, c1);
  store(3, d0, d1);
  store(4, e0, e1);
  store(5, f0, f1);
}

HWY_INLINE void products_of(int64_t rows, int64_t in, const float* v, const float* packed, float* m, int64_t row) {
  switch (rows) {
    case 1:
      return products_block<1>(in, v, packed, m, row);
    case 2:
      return products_block<2>(in, v, packed, m, row);
    case 3:
      return products_block<3>(in, v, packed, m, row);
    case 4:
      return products_block<4>(in, v, packed, m, row);
    case 5:
      return products_block<5>(in, v, packed, m, row);
    default:
      return products_block<6>(in, v, packed, m, row);
  }
}

void Products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* packed, float* m) {
  const int64_t width = 2 * lanes(), row = panels * width;
  const int64_t blocks = (tiles + 5) / 6;
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t tile = 0;
    for (int64_t block = 0; block < blocks; ++block) {  // of nearly equal size: 16 tiles are 6 + 5 + 5
      const int64_t rows = (tiles - tile + blocks - block - 1) / (blocks - block);
      products_of(rows, in, v + tile * in, packed + panel * in * width, m + tile * row + panel * width, row);
      tile += rows;
    }
  }
}

// Four input channels times one panel of output channels, over all tiles.
HWY_INLINE void gradient_block(int64_t tiles, const float* HWY_RESTRICT v, const float* HWY_RESTRICT g, float* u,
                               int64_t row) {
  const Tag d;
  const int64_t step = lanes(), width = 2 * step;
  Vec a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
  for (int64_t t = 0; t < tiles; ++t) {
    const Vec g0 = hn::LoadU(d, g + t * width), g1 = hn::LoadU(d, g + t * width + step);
    const auto add = [&](int k, Vec& s0, Vec& s1) HWY_ATTR {
      const Vec x = hn::Set(d, v[t * step + k]);
      s0 = hn::MulAdd(x, g0, s0);
      s1 = hn::MulAdd(x, g1, s1);
    };
    add(0, a0, a1);
    add(1, b0, b1);
    add(2, c0, c1);
    add(3, d0, d1);
  }
  const auto store = [&](int k, Vec s0, Vec s1) HWY_ATTR {
    float* to = u + k * row;
    hn::StoreU(hn::Add(hn::LoadU(d, to), s0), d, to);
    hn::StoreU(hn::Add(hn::LoadU(d, to + step), s1), d, to + step);
  };
  store(0, a0, a1);
  store(1, b0, b1);
  store(2, c0, c1);
  store(3, d0, d1);
}

void GradientProducts(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* g, float* u) {
  const int64_t step = lanes(), width = 2 * step, row = panels * width;
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t k = 0; k < in; k += 4) {
      const float* from = v + k / step * tiles * step + k % step;
      gradient_block(tiles, from, g + panel * tiles * width, u + k * row + panel * width, row);
    }
  }
}

void Unpack(const float* sums, int64_t position_stride, int64_t in_first, int64_t in_end, int64_t out,
            float* const* taps) {
  const Tag d;
  const int64_t width = 2 * lanes(), row = (out + width - 1) / width * width;
  for (int64_t i = in_first; i < in_end; ++i) {
    for (int64_t o = 0; o < out; o += lanes()) {
      transform<WeightGradientTransform>(
          [&](int r, int k) HWY_ATTR { return hn::LoadU(d, sums + (r * 6 + k) * position_stride + i * row + o); },
          [&](int r, int k, Vec v) HWY_ATTR { hn::StoreU(v, d, taps[r * 3 + k] + i * out + o); });
    }
  }
}

int64_t LaneCount() { return lanes(); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(LaneCount);
HWY_EXPORT(PackPanel);
HWY_EXPORT(Input);
HWY_EXPORT(Products);
HWY_EXPORT(Output);
HWY_EXPORT(OutputGradient);
HWY_EXPORT(GradientProducts);
HWY_EXPORT(Unpack);

int64_t winograd_lanes() { return HWY_DYNAMIC_DISPATCH(LaneCount)(); }
int64_t winograd_panel() { return 2 * winograd_lanes(); }

void winograd_pack_panel(const float* const* taps, int64_t in, int64_t out, int64_t panel, float* packed,
                         int64_t stride) {
  HWY_DYNAMIC_DISPATCH(PackPanel)(taps, in, out, panel, packed, stride);
}
void winograd_input(const WinogradFrames& f, const float* x, int64_t first, int64_t end, const WinogradTiles& to) {
  HWY_DYNAMIC_DISPATCH(Input)(f, x, first, end, to);
}
void winograd_products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* packed, float* m) {
  HWY_DYNAMIC_DISPATCH(Products)(tiles, in, panels, v, packed, m);
}
void winograd_output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end,
                     const WinogradEpilogue& epilogue, float* y) {
  HWY_DYNAMIC_DISPATCH(Output)(f, m, first, end, epilogue, y);
}
void winograd_output_gradient(const WinogradFrames& f, const float* g, int64_t first, int64_t end,
                              const WinogradTiles& to) {
  HWY_DYNAMIC_DISPATCH(OutputGradient)(f, g, first, end, to);
}
void winograd_gradient_products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* g, float* u) {
  HWY_DYNAMIC_DISPATCH(GradientProducts)(tiles, in, panels, v, g, u);
}
void winograd_unpack(const float* sums, int64_t position_stride, int64_t in_first, int64_t in_end, int64_t out,
                     float* const* taps) {
  HWY_DYNAMIC_DISPATCH(Unpack)(sums, position_stride, in_first, in_end, out, taps);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
