// Compiled once per instruction set by Highway; the best one is picked at run time. All vectors run over channels,
// which lie together in memory, so no kernel shuffles lanes. `lanes()` floats are a vector (8 on AVX2, 16 on AVX-512);
// a panel is two vectors of output channels.
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

// Transforms the size x size pixels that begin `before` pixels above and left of each tile (6 x 6 from one pixel before
// for inputs, 4 x 4 for gradients of outputs).
// Loops: tiles, then vectors of channels. The addresses of a tile's pixels are found once and serve all its channels;
// nullptr stands for a pixel outside of the frame and reads as zeros, so frames need no border. For one vector of
// channels the pixels are loaded, transformed and written to 36 places, one per position: each position thereby gets a
// matrix [tiles][channels] that the products read from front to back.
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

// Four rows of four floats, `from_stride` apart, become four columns.
HWY_INLINE void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < 16; ++i) to[i % 4 * to_stride + i / 4] = from[i / 4 * from_stride + i % 4];
#else
  const hn::CappedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto a = hn::InterleaveLower(d, r0, r1), b = hn::InterleaveLower(d, r2, r3);
  const auto e = hn::InterleaveUpper(d, r0, r1), f = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, b, a), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, b, a), d, to + to_stride);
  hn::StoreU(hn::ConcatLowerLower(d, f, e), d, to + 2 * to_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, f, e), d, to + 3 * to_stride);
#endif
}

// Taps that lie together, four output channels at a time: two squares of taps and the ninth. Input channels inside, so
// that weights [out][in][9] are read from front to back.
void Gather(const WinogradWeights& w, int64_t first, int64_t end, int64_t out, int64_t panel, float* to) {
  const int64_t width = 2 * lanes(), count = std::min(width, out - panel * width), tap = (end - first) * width;
  if (count < width) std::fill_n(to, 9 * tap, 0.0f);
  float* last = to + (w.turned ? 0 : 8 * tap);  // where the ninth goes
  const int64_t step = w.turned ? -tap : tap;
  for (int64_t o = 0; o < count; o += 4) {
    for (int64_t i = first; i < end; ++i) {
      const float* from = w.data + (panel * width + o) * w.out_stride + i * w.in_stride;
      float* at = (w.turned ? to + 8 * tap : to) + (i - first) * width + o;
      if (w.tap_stride == 1) {
        transpose(from, w.out_stride, at, step);
        transpose(from + 4, w.out_stride, at + 4 * step, step);
        for (int64_t k = 0; k < 4; ++k) last[(i - first) * width + o + k] = from[k * w.out_stride + 8];
      } else {
        for (int64_t k = 0; k < 4; ++k) {
          for (int64_t t = 0; t < 9; ++t) at[t * step + k] = from[k * w.out_stride + t * w.tap_stride];
        }
      }
    }
  }
}

// G w G^T of a panel. Vectors run over (input channel, output channel), which lie together in each of the 9 taps and in
// each of the 36 positions; 9 loads, 36 stores.
void PackPanel(const float* taps, int64_t in, float* packed, int64_t stride) {
  const Tag d;
  const int64_t width = 2 * lanes();
  for (int64_t at = 0; at < in * width; at += lanes()) {
    transform<WeightTransform<BalancedPoints>>(
        [&](int r, int k) HWY_ATTR { return hn::LoadU(d, taps + (r * 3 + k) * in * width + at); },
        [&](int r, int k, Vec v) HWY_ATTR { hn::StoreU(v, d, packed + (r * 6 + k) * stride + at); });
  }
}

constexpr int64_t kPace = 1 << 16;  // `pace` is a fraction of it, so that the loop multiplies and never divides

// The micro-kernel of the matrix product: kRows tiles (rows of v) times one panel of two vectors of output channels.
//
//                w0  w1        one step k (an input channel): load two vectors of weights, broadcast v[r][k] of each
//   v[0][k]      a0  a1        tile, 12 multiply-adds. 12 accumulators, 2 weights and 1 broadcast are 15 of the 16
//   v[1][k]      b0  b1        registers of AVX2; sums leave them once, after the last k. 12 independent chains cover
//     ...                      the latency of the multiply-add (4 to 5 cycles, two units), and 8 loads and a
//   v[5][k]      f0  f1        prefetch fit the two load ports in the 6 cycles that the multiply-adds take.
//
// The weights of a panel are read in the order they lie in, each v[r] as well. Meanwhile the next panel is asked for,
// which would otherwise have to be waited for: `ahead` points to this block's share of it, and every kPace / pace steps
// the prefetch moves on by a row of two vectors (a cache line on AVX2; of the two lines on AVX-512 the first). To the
// second-level cache, as the first one is full.
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

// One position: m [tiles][panels * width] = v [tiles][in] * packed. Panels outside, blocks of at most 6 tiles inside:
// the weights of a panel (in x 64 bytes on AVX2, 16 KiB for 256 inputs) stay in the first-level cache while all tiles
// pass by, and the tiles are read again for each panel from the second-level cache, where the caller's chunks
// fit. Each of the n blocks prefetches another n-th of the next panel; behind the last panel that reaches into the next
// position. No threads here: the caller has split tiles or positions.
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

// The micro-kernel of the weight gradient: four input channels times one panel of output channels, summed over tiles.
// One step is a tile: two vectors of g, four broadcasts of v, 8 multiply-adds into 8 accumulators that leave the
// registers once. Four, because v lies in panels of one vector of channels, and four divides every size of those (4, 8,
// 16). kAdd continues the sums of the chunk of tiles before.
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

// One position: u [in][panels * width] = v^T g. Both operands are in panels, tile after tile, so that the inner loop
// walks two arrays from front to back. Panels of g outside, groups of four input channels inside: a panel of g is read
// again for each group, v once per panel.
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

// G^T u G: 36 sums to 9 taps for a vector of output channels, then a transpose through a small array on the stack,
// since weights have their taps together and sums their output channels.
void Unpack(const float* sums, int64_t position_stride, int64_t first, int64_t end, int64_t in, int64_t out,
            float* weight) {
  const Tag d;
  const int64_t width = 2 * lanes(), row = (out + width - 1) / width * width;
  HWY_ALIGN float taps[9 * HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t o = 0; o < out; o += lanes()) {
    for (int64_t i = first; i < end; ++i) {
      transform<WeightGradientTransform<BalancedPoints>>(
          [&](int r, int k) HWY_ATTR { return hn::LoadU(d, sums + (r * 6 + k) * position_stride + i * row + o); },
          [&](int r, int k, Vec v) HWY_ATTR { hn::Store(v, d, taps + (r * 3 + k) * lanes()); });
      for (int64_t lane = 0; lane < lanes(); lane += 4) {
        float* to = weight + ((o + lane) * in + i) * 9;
        transpose(taps + lane, lanes(), to, in * 9);
        transpose(taps + 4 * lanes() + lane, lanes(), to + 4, in * 9);
        for (int64_t k = 0; k < 4; ++k) to[k * in * 9 + 8] = taps[8 * lanes() + lane + k];
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
HWY_EXPORT(Gather);
HWY_EXPORT(PackPanel);
HWY_EXPORT(Input);
HWY_EXPORT(Products);
HWY_EXPORT(Output);
HWY_EXPORT(OutputGradient);
HWY_EXPORT(GradientProducts);
HWY_EXPORT(Unpack);

int64_t winograd_lanes() { return HWY_DYNAMIC_DISPATCH(LaneCount)(); }
int64_t winograd_panel() { return 2 * winograd_lanes(); }

void winograd_gather(const WinogradWeights& w, int64_t first, int64_t end, int64_t out, int64_t panel, float* to) {
  HWY_DYNAMIC_DISPATCH(Gather)(w, first, end, out, panel, to);
}
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
