// Compiled once per instruction set by Highway; the best one is picked at run time.
// Whole points (0, +-1, +-2) keep whole numbers whole, at the price of larger ones. Inputs of 8 bits grow to at most
// 12700 in the transform, so products are of 16 bits, summed in 32, and pmaddwd does two of them per lane.
#include "convssm/ops/winograd_int8_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/winograd_int8_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // winograd_takes() takes no shape there

using Tag32 = hn::RebindToSigned<Tag>;
using Tag16 = hn::Repartition<int16_t, Tag>;
using Vec32 = hn::Vec<Tag32>;
using Vec16 = hn::Vec<Tag16>;

// The largest sum of magnitudes in a row of B^T: what a transform makes of inputs of at most 1.
constexpr int64_t kGain[6] = {10, 10, 10, 6, 6, 10};

// sum + a0 b0 + a1 b1 of every pair of neighbours.
HWY_INLINE Vec32 add_pairs(Vec16 a, Vec16 b, Vec32 sum) {
  const Tag32 d;
#if HWY_ARCH_X86
  Vec32 unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, a, b, sum, unused);
#else  // elsewhere that operation may order its results in another way
  const Vec32 x = hn::BitCast(d, a), y = hn::BitCast(d, b);
  const auto low = [&](Vec32 v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const Vec32 first = hn::Mul(low(x), low(y)), second = hn::Mul(hn::ShiftRight<16>(x), hn::ShiftRight<16>(y));
  return hn::Add(sum, hn::Add(first, second));
#endif
}

// Weights become whole multiples of this step, one per position and output channel, such that sums cannot overflow 32
// bits whatever the inputs: |sum| <= gain * 127 * (sum of |weights| / step + in/2 of rounding).
HWY_INLINE float weight_scale(float largest, float sum, int64_t in, int64_t gain) {
  const float room = static_cast<float>(INT32_MAX / (gain * kInt8Levels) - in);
  return std::max({largest / INT16_MAX, sum / room, 1e-30f});
}

// Two passes over the input channels for each vector of output channels: the first finds the largest weight and the sum
// of magnitudes of each position, which give the steps; the second transforms again and rounds. To transform twice is
// cheaper than to keep 36 x in vectors. Pairs of input channels lie together, [in/2][panel width][2], as add_pairs
// reads them.
void Int8PackPanel(const float* taps, int64_t in, int16_t* weights, int64_t stride, float* scales,
                   int64_t scale_stride) {
  const Tag d;
  const int64_t width = 2 * lanes(), count = kWinogradPositions * lanes();
  constexpr int64_t kMost = kWinogradPositions * HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float values[kMost], largest[kMost], sums[kMost];
  const auto transform_at = [&](int64_t at) HWY_ATTR {
    transform<WeightTransform<WholePoints>>(
        [&](int r, int k) HWY_ATTR { return hn::LoadU(d, taps + (r * 3 + k) * in * width + at); },
        [&](int r, int k, Vec v) HWY_ATTR { hn::Store(v, d, values + (r * 6 + k) * lanes()); });
  };
  for (int64_t c = 0; c < width; c += lanes()) {
    std::fill_n(largest, count, 0.0f);
    std::fill_n(sums, count, 0.0f);
    for (int64_t i = 0; i < in; ++i) {
      transform_at(i * width + c);
      for (int64_t j = 0; j < count; ++j) {
        largest[j] = std::max(largest[j], std::abs(values[j]));
        sums[j] += std::abs(values[j]);
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t p = j / lanes();
      scales[p * scale_stride + c + j % lanes()] = weight_scale(largest[j], sums[j], in, kGain[p / 6] * kGain[p % 6]);
    }
    for (int64_t i = 0; i < in; ++i) {
      transform_at(i * width + c);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t p = j / lanes(), lane = c + j % lanes();
        weights[p * stride + (i / 2 * width + lane) * 2 + i % 2] =
            static_cast<int16_t>(std::lrint(values[j] / scales[p * scale_stride + lane]));
      }
    }
  }
}

// As transform_frames of winograd_kernels.cpp, with pixels rounded to -127..127 on their way in. The transform runs in
// float32, where these whole numbers stay exact (at most 127 * 10 * 10 = 12700, far below 2^24), and the result fits 16
// bits: no rounding happens after the first.
void Int8Input(const WinogradFrames& f, const float* x, int64_t first, int64_t end, const float* inverse_steps,
               int64_t stride, int16_t* to) {
  const Tag d;
  const hn::Rebind<int16_t, Tag> d16;
  const Tag32 d32;
  const Vec most = hn::Set(d, float{kInt8Levels}), least = hn::Set(d, -float{kInt8Levels});
  for (int64_t tile = first; tile < end; ++tile) {
    const TileOrigin origin(f, tile);
    const float* pixels[kWinogradPositions];
    for (int r = 0; r < 6; ++r) {
      for (int c = 0; c < 6; ++c) {
        pixels[r * 6 + c] = origin.inside(f, r - 1, c - 1) ? x + origin.pixel(f, r - 1, c - 1) : nullptr;
      }
    }
    int16_t* row = to + (tile - first) * f.channels;
    for (int64_t channel = 0; channel < f.channels; channel += lanes()) {
      const Vec inverse = hn::LoadU(d, inverse_steps + channel);
      transform<InputTransform<WholePoints>>(
          [&](int r, int c) HWY_ATTR {
            const float* pixel = pixels[r * 6 + c];
            if (pixel == nullptr) return hn::Zero(d);
            const Vec scaled = hn::Mul(hn::LoadU(d, pixel + channel), inverse);
            return hn::Round(hn::Max(hn::Min(scaled, most), least));
          },
          [&](int r, int c, Vec v) HWY_ATTR {
            hn::StoreU(hn::DemoteTo(d16, hn::ConvertTo(d32, v)), d16, row + (r * 6 + c) * stride + channel);
          });
    }
  }
}

constexpr int64_t kPace = 1 << 16;

// The micro-kernel: kRows tiles times one panel of output channels. One step is a pair of input channels: a 32-bit
// broadcast holds v[r][k] and v[r][k+1], a vector of weights the same pair for each of its output channels, and
// add_pairs (pmaddwd on x86) multiplies and adds both. 4 x 2 accumulators of 32 bits, two vectors of weights and the
// pair; four rows and not six as in float32, because pmaddwd does not accumulate and its products take registers too.
// Scales are applied once, when the sums leave the registers. Meanwhile a part of the next panel is asked for, as in
// products_block of winograd_kernels.cpp; a row of it is a pair of input channels.
template <int kRows>
HWY_INLINE void int8_block(int64_t in, const int16_t* HWY_RESTRICT v, const int16_t* HWY_RESTRICT weights,
                           const float* scales, float* m, int64_t row, const int16_t* ahead, int64_t pace) {
  const Tag d;
  const Tag32 d32;
  const Tag16 d16;
  Vec32 a0 = hn::Zero(d32), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0;
  const int64_t half = 2 * lanes();
  const auto pair_of = [&](int r, int64_t k) HWY_ATTR {
    int32_t both;
    std::memcpy(&both, v + r * in + k, sizeof(both));
    return hn::BitCast(d16, hn::Set(d32, both));
  };
  for (int64_t k = 0; k < in; k += 2) {
    const int16_t* w = weights + k * half;
    __builtin_prefetch(ahead + k * pace / (2 * kPace) * 2 * half, 0, 2);
    const Vec16 w0 = hn::LoadU(d16, w), w1 = hn::LoadU(d16, w + half);
    const auto add = [&](int r, Vec32& s0, Vec32& s1) HWY_ATTR {
      if (r >= kRows) return;
      const Vec16 x = pair_of(r, k);
      s0 = add_pairs(x, w0, s0);
      s1 = add_pairs(x, w1, s1);
    };
    add(0, a0, a1);
    add(1, b0, b1);
    add(2, c0, c1);
    add(3, e0, e1);
  }
  const Vec scale0 = hn::LoadU(d, scales), scale1 = hn::LoadU(d, scales + lanes());
  const auto store = [&](int r, Vec32 s0, Vec32 s1) HWY_ATTR {
    if (r >= kRows) return;
    hn::StoreU(hn::Mul(hn::ConvertTo(d, s0), scale0), d, m + r * row);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, s1), scale1), d, m + r * row + lanes());
  };
  store(0, a0, a1);
  store(1, b0, b1);
  store(2, c0, c1);
  store(3, e0, e1);
}

HWY_INLINE void int8_rows(int64_t rows, int64_t in, const int16_t* v, const int16_t* weights, const float* scales,
                          float* m, int64_t row, const int16_t* ahead, int64_t pace) {
  switch (rows) {
    case 1:
      return int8_block<1>(in, v, weights, scales, m, row, ahead, pace);
    case 2:
      return int8_block<2>(in, v, weights, scales, m, row, ahead, pace);
    case 3:
      return int8_block<3>(in, v, weights, scales, m, row, ahead, pace);
    default:
      return int8_block<4>(in, v, weights, scales, m, row, ahead, pace);
  }
}

// One position. Panels outside, blocks of at most four tiles inside, as Products of winograd_kernels.cpp: weights take
// half the bytes, so a panel of 512 inputs stays in the first-level cache.
void Int8Products(int64_t tiles, int64_t in, int64_t panels, const int16_t* v, const int16_t* weights,
                  const float* scales, float* m) {
  const int64_t width = 2 * lanes(), row = panels * width, blocks = (tiles + 3) / 4;
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t tile = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t rows = (tiles - tile + blocks - block - 1) / (blocks - block);
      const int16_t* own = weights + panel * in * width;
      const int16_t* ahead = own + (blocks + block) * (in / 2) / blocks * 2 * width;
      int8_rows(rows, in, v + tile * in, own, scales + panel * width, m + tile * row + panel * width, row, ahead,
                kPace / blocks);
      tile += rows;
    }
  }
}

void Int8Output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end, const WinogradEpilogue& e,
                float* y) {
  with_activation(e.activation,
                  [&](auto activation) HWY_ATTR { output<WholePoints, activation.value>(f, m, first, end, e, y); });
}

#else

void Int8PackPanel(const float*, int64_t, int16_t*, int64_t, float*, int64_t) {}
void Int8Input(const WinogradFrames&, const float*, int64_t, int64_t, const float*, int64_t, int16_t*) {}
void Int8Products(int64_t, int64_t, int64_t, const int16_t*, const int16_t*, const float*, float*) {}
void Int8Output(const WinogradFrames&, const WinogradTiles&, int64_t, int64_t, const WinogradEpilogue&, float*) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Int8PackPanel);
HWY_EXPORT(Int8Input);
HWY_EXPORT(Int8Products);
HWY_EXPORT(Int8Output);

void winograd_int8_pack_panel(const float* taps, int64_t in, int16_t* weights, int64_t stride, float* scales,
                              int64_t scale_stride) {
  HWY_DYNAMIC_DISPATCH(Int8PackPanel)(taps, in, weights, stride, scales, scale_stride);
}
void winograd_int8_input(const WinogradFrames& f, const float* x, int64_t first, int64_t end,
                         const float* inverse_steps, int64_t stride, int16_t* to) {
  HWY_DYNAMIC_DISPATCH(Int8Input)(f, x, first, end, inverse_steps, stride, to);
}
void winograd_int8_products(int64_t tiles, int64_t in, int64_t panels, const int16_t* v, const int16_t* weights,
                            const float* scales, float* m) {
  HWY_DYNAMIC_DISPATCH(Int8Products)(tiles, in, panels, v, weights, scales, m);
}
void winograd_int8_output(const WinogradFrames& f, const WinogradTiles& m, int64_t first, int64_t end,
                          const WinogradEpilogue& e, float* y) {
  HWY_DYNAMIC_DISPATCH(Int8Output)(f, m, first, end, e, y);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
