// The pieces of Winograd's algorithm in whole numbers: products exactly, the convolution against one of inputs that were
// rounded as documented.
#include "convssm/ops/winograd_int8_kernels.h"

#include "tests/ops/kernels/convolution.h"

namespace convssm::ops::testing {
namespace {

constexpr int64_t kPositions = kWinogradPositions;

// Tiles are taken in blocks of at most four, inputs in pairs.
TEST(WinogradInt8Kernels, Products) {
  on_every_isa([] {
    const int64_t lanes = winograd_lanes(), width = winograd_panel();
    if (lanes < 4) return;  // winograd_int8_takes() takes no shape there
    Stream stream(1, "int8");
    const auto whole = [&](int64_t size) {
      std::vector<int16_t> values(static_cast<size_t>(size));
      for (int16_t& value : values) value = static_cast<int16_t>(static_cast<int64_t>(stream.below(4001)) - 2000);
      return values;
    };
    for (const int64_t tiles : {1, 2, 3, 4, 5, 8, 9, 14}) {
      for (const auto& [in, panels] : {std::pair{lanes, int64_t{1}}, {3 * lanes, 2}}) {
        const int64_t row = panels * width;
        const auto v = whole(tiles * in), w = whole(panels * in * width);
        const auto scales = normals<float>(row, 2);
        auto m = unwritten<float>(tiles * row);
        winograd_int8_products(tiles, in, panels, v.data(), w.data(), scales.data(), m.data());
        Doubles expected(m.size());
        for (int64_t at = 0; at < tiles * row; ++at) {
          const int64_t tile = at / row, panel = at % row / width, lane = at % width;
          int64_t sum = 0;
          for (int64_t k = 0; k < in; ++k) {
            sum += v[tile * in + k] * w[((panel * in + k - k % 2) * width) + 2 * lane + k % 2];
          }
          expected[at] = static_cast<double>(sum) * static_cast<double>(scales[at % row]);
        }
        EXPECT_LT(difference(m, expected), tolerance<float>()) << tiles;
      }
    }
  });
}

struct Packed {
  std::vector<int16_t> weights;
  std::vector<float> scales;
};

// Weights times the step of their input, [36][panels][in/2][panel width][2] with scales [36][panels][panel width].
Packed packed(const WinogradShape& s, const std::vector<float>& weight, const std::vector<float>& steps) {
  const int64_t width = winograd_panel(), row = winograd_padded(s.out);
  Packed all{std::vector<int16_t>(static_cast<size_t>(kPositions * s.in * row)), unwritten<float>(kPositions * row)};
  for (int64_t first = 0; first < s.out; first += width) {
    auto taps = filled(9 * s.in * width, 0.0f);
    for (int64_t i = 0; i < 9 * s.in * width; ++i) {
      const int64_t o = first + i % width, in = i / width % s.in, tap = i / width / s.in;
      if (o < s.out) taps[i] = weight[(o * s.in + in) * 9 + tap] * steps[in];
    }
    winograd_int8_pack_panel(taps.data(), s.in, all.weights.data() + first * s.in, s.in * row,
                             all.scales.data() + first, row);
  }
  return all;
}

TEST(WinogradInt8Kernels, ConvolutionOfRoundedInputs) {
  for_winograd_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const WinogradFrames from{s.frames, s.height, s.width, s.in}, to{s.frames, s.height, s.width, s.out};
    const int64_t tiles = from.tiles(), row = winograd_padded(s.out), cut = tiles / 2;
    auto steps = unwritten<float>(s.in), inverse = steps;
    for (int64_t i = 0; i < s.in; ++i) {
      steps[i] = (1 + 0.1f * static_cast<float>(i)) / kInt8Levels;
      inverse[i] = 1 / steps[i];
    }
    const Packed w = packed(s, data.weight, steps);
    std::vector<int16_t> v(static_cast<size_t>(kPositions * tiles * s.in));
    auto m = unwritten<float>(kPositions * tiles * row), y = unwritten<float>(static_cast<int64_t>(data.g.size()));
    for (const auto& [first, end] : {std::pair{int64_t{0}, cut}, {cut, tiles}}) {
      winograd_int8_input(from, data.x.data(), first, end, inverse.data(), tiles * s.in, v.data() + first * s.in);
    }
    for (int64_t p = 0; p < kPositions; ++p) {
      winograd_int8_products(tiles, s.in, row / winograd_panel(), v.data() + p * tiles * s.in,
                             w.weights.data() + p * s.in * row, w.scales.data() + p * row, m.data() + p * tiles * row);
    }
    for (const auto& [first, end] : {std::pair{int64_t{0}, cut}, {cut, tiles}}) {
      winograd_int8_output(to, {m.data() + first * row, tiles * row, row, row, 0}, first, end, {}, y.data());
    }
    Doubles rounded = exact(data.x);
    for (size_t i = 0; i < rounded.size(); ++i) {
      const double step = static_cast<double>(steps[i % steps.size()]);
      rounded[i] = std::clamp(std::nearbyint(rounded[i] / step), -127.0, 127.0) * step;
    }
    EXPECT_LT(difference(y, convolution(s, rounded, exact(data.weight))), 0.01);
  });
}

}  // namespace
}  // namespace convssm::ops::testing
