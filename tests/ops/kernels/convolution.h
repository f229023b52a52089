// A 3x3 convolution with zero padding by its definition, in float64, for the tests of Winograd's algorithm. Channels
// together: x [frames,height,width,in], weight [out,in,9].
#pragma once

#include "convssm/ops/winograd.h"
#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {

using Doubles = std::vector<double>;

// visit(index of the pixel of y, index of the pixel of x, tap) for all pairs that meet.
template <class Visit>
void for_pairs(const WinogradShape& s, const Visit& visit) {
  for (int64_t frame = 0; frame < s.frames; ++frame) {
    for (int64_t i = 0; i < s.height * s.width * 9; ++i) {
      const int64_t tap = i % 9, row = i / 9 / s.width, column = i / 9 % s.width;
      const int64_t from_row = row + tap / 3 - 1, from_column = column + tap % 3 - 1;
      if (from_row < 0 || from_row >= s.height || from_column < 0 || from_column >= s.width) continue;
      const int64_t start = frame * s.height * s.width;
      visit(start + row * s.width + column, start + from_row * s.width + from_column, tap);
    }
  }
}

inline Doubles convolution(const WinogradShape& s, const Doubles& x, const Doubles& weight) {
  Doubles y(s.frames * s.height * s.width * s.out);
  for_pairs(s, [&](int64_t to, int64_t from, int64_t tap) {
    for (int64_t o = 0; o < s.out; ++o) {
      for (int64_t i = 0; i < s.in; ++i) y[to * s.out + o] += x[from * s.in + i] * weight[(o * s.in + i) * 9 + tap];
    }
  });
  return y;
}

// The gradient of the weights for the gradient g of y.
inline Doubles weight_gradient(const WinogradShape& s, const Doubles& x, const Doubles& g) {
  Doubles weight(s.out * s.in * 9);
  for_pairs(s, [&](int64_t to, int64_t from, int64_t tap) {
    for (int64_t o = 0; o < s.out; ++o) {
      for (int64_t i = 0; i < s.in; ++i) weight[(o * s.in + i) * 9 + tap] += x[from * s.in + i] * g[to * s.out + o];
    }
  });
  return weight;
}

struct ConvData {
  std::vector<float> x, weight, bias, g;
  explicit ConvData(const WinogradShape& s)
      : x(normals<float>(s.frames * s.height * s.width * s.in, 1)),
        weight(normals<float>(s.out * s.in * 9, 2, 0.2)),
        bias(normals<float>(s.out, 3)),
        g(normals<float>(s.frames * s.height * s.width * s.out, 4)) {}
};

// Whole tiles of 4x4 and cut ones, frames smaller than a tile, several frames; one, two and three vectors of channels, so
// that panels of two are full and half full. test(shape) on every instruction set that has these kernels.
template <class Test>
void for_winograd_shapes(const Test& test) {
  on_every_isa([&] {
    const int64_t lanes = winograd_lanes();
    if (!winograd_takes(lanes, lanes)) return;
    for (const auto& [frames, height, width] :
         {std::array<int64_t, 3>{1, 1, 1}, {1, 4, 4}, {2, 5, 7}, {1, 3, 9}, {3, 8, 4}}) {
      for (const auto& [in, out] : {std::pair{1, 1}, {2, 3}, {3, 2}}) {
        test(WinogradShape{frames, height, width, in * lanes, out * lanes});
      }
    }
  });
}

}  // namespace convssm::ops::testing
