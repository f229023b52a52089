// Compiled once per instruction set by Highway; the best one is picked at run time.
#include "convssm/ops/winograd_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

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
  transform_frames<InputTransform<BalancedPoints>>(f, x, first, end, 1, to);
}

void OutputGradient(const WinogradFrames& f, const float* g, int64_t first, int64_t end, const WinogradTiles& to) {
  transform_frames<OutputGradientTransform<BalancedPoints>>(f, g, first, end, 0, to);
}

void Output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end, const WinogradEpilogue& e,
            float* y) {
  with_activation(e.activation,
                  [&](auto activation) HWY_ATTR { output<BalancedPoints, activation.value>(f, m, first, end, e, y); });
}

void PackPanel(const float* taps, int64_t in, float* packed, int64_t stride) {
  const Tag d;
  const int64_t width = 2 * lanes();
  for (int64_t at = 0; at < in * width; at += lanes()) {
    transform<WeightTransform<BalancedPoints>>(
        [&](int r, int k) HWY_ATTR { return hn::LoadU(d, taps + (r * 3 + k) * in * width + at); },
        [&](int r, int k, Vec v) HWY_ATTR { hn::StoreU(v, d, packed + (r * 6 + k) * stride + at); });
  }
}

constexpr int64_t kPace = 1 << 16;

// kRows tiles times one panel of output channels.
// Meanwhile asks for the part of the next panel that `ahead` points to, which would otherwise have to be waited for: a
// line of it every kPace / pace steps, to the second-level cache (the first one is full).
template <int kRows>
HWY_INLINE void products_block(int64_t in, const float* HWY_RESTRICT v, const float* HWY_RESTRICT packed, float* m,
                               int64_t row, const float* ahead, int64_t pace) {
  const Tag d;
  Vec a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0, e0 = a0, e1 = a0, f0 = a0,
      f1 = a0;
  const int64_t width = 2 * lanes();
  for (int64_t k = 0; k < in; ++k) {
    const Vec w0 = hn::LoadU(d, packed + k * width), w1 = hn::LoadU(d, packed + k * width + lanes());
    __builtin_prefetch(ahead + k * pace / kPace * width, 0, 2);
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

HWY_INLINE void products_of(int64_t rows, int64_t in, const float* v, const float* packed, float* m, int64_t row,
                            const float* ahead, int64_t pace) {
  switch (rows) {
    case 1:
      return products_block<1>(in, v, packed, m, row, ahead, pace);
    case 2:
      return products_block<2>(in, v, packed, m, row, ahead, pace);
    case 3:
      return products_block<3>(in, v, packed, m, row, ahead, pace);
    case 4:
      return products_block<4>(in, v, packed, m, row, ahead, pace);
    case 5:
      return products_block<5>(in, v, packed, m, row, ahead, pace);
    default:
      return products_block<6>(in, v, packed, m, row, ahead, pace);
  }
}

void Products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* packed, float* m) {
  const int64_t width = 2 * lanes(), row = panels * width;
  const int64_t blocks = (tiles + 5) / 6;
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t tile = 0;
    for (int64_t block = 0; block < blocks; ++block) {  // of nearly equal size: 16 tiles are 6 + 5 + 5
      const int64_t rows = (tiles - tile + blocks - block - 1) / (blocks - block);
      const float* weights = packed + panel * in * width;
      const float* ahead = weights + (blocks + block) * in / blocks * width;
      products_of(rows, in, v + tile * in, weights, m + tile * row + panel * width, row, ahead, kPace / blocks);
      tile += rows;
    }
  }
}

// Four input channels times one panel of output channels, over all tiles.
template <bool kAdd>
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
    if constexpr (kAdd) {
      s0 = hn::Add(hn::LoadU(d, to), s0);
      s1 = hn::Add(hn::LoadU(d, to + step), s1);
    }
    hn::StoreU(s0, d, to);
    hn::StoreU(s1, d, to + step);
  };
  store(0, a0, a1);
  store(1, b0, b1);
  store(2, c0, c1);
  store(3, d0, d1);
}

void GradientProducts(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* g, float* u, bool add) {
  const int64_t step = lanes(), width = 2 * step, row = panels * width;
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t k = 0; k < in; k += 4) {
      const float* from = v + k / step * tiles * step + k % step;
      const float* other = g + panel * tiles * width;
      float* to = u + k * row + panel * width;
      add ? gradient_block<true>(tiles, from, other, to, row) : gradient_block<false>(tiles, from, other, to, row);
    }
  }
}

void Unpack(const float* sums, int64_t position_stride, int64_t first, int64_t end, int64_t in, int64_t out,
            float* weight) {
  const Tag d;
  const int64_t width = 2 * lanes(), row = (out + width - 1) / width * width;
  HWY_ALIGN float taps[9 * HWY_MAX_BYTES / sizeof(float)];
  for (int64_t o = 0; o < out; o += lanes()) {
    for (int64_t i = first; i < end; ++i) {
      transform<WeightGradientTransform<BalancedPoints>>(
          [&](int r, int k) HWY_ATTR { return hn::LoadU(d, sums + (r * 6 + k) * position_stride + i * row + o); },
          [&](int r, int k, Vec v) HWY_ATTR { hn::Store(v, d, taps + (r * 3 + k) * lanes()); });
      for (int64_t lane = 0; lane < lanes(); ++lane) {
        float* to = weight + ((o + lane) * in + i) * 9;
        for (int64_t tap = 0; tap < 9; ++tap) to[tap] = taps[tap * lanes() + lane];
      }
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

void winograd_pack_panel(const float* taps, int64_t in, float* packed, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(PackPanel)(taps, in, packed, stride);
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
void winograd_gradient_products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* g, float* u,
                                bool add) {
  HWY_DYNAMIC_DISPATCH(GradientProducts)(tiles, in, panels, v, g, u, add);
}
void winograd_unpack(const float* sums, int64_t position_stride, int64_t first, int64_t end, int64_t in, int64_t out,
                     float* weight) {
  HWY_DYNAMIC_DISPATCH(Unpack)(sums, position_stride, first, end, in, out, weight);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
