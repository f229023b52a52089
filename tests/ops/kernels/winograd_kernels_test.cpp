// The pieces of Winograd's algorithm: products against plain loops, transforms and products together against
// convolutions by their definition. Every array is as large as the contracts say, without the distances that
// ops/winograd.cpp leaves between positions.
#include "convssm/ops/winograd_kernels.h"

#include "tests/ops/kernels/activations.h"
#include "tests/ops/kernels/convolution.h"

namespace convssm::ops::testing {
namespace {

constexpr int64_t kPositions = kWinogradPositions;

struct Frames {
  WinogradFrames from, to;
  explicit Frames(const WinogradShape& s)
      : from{s.frames, s.height, s.width, s.in}, to{s.frames, s.height, s.width, s.out} {}
};

// Weights [out,in,9] as packed [36][panels][in][panel width].
std::vector<float> packed(const WinogradShape& s, const std::vector<float>& weight) {
  const int64_t width = winograd_panel(), stride = s.in * winograd_padded(s.out);
  auto all = unwritten<float>(kPositions * stride);
  for (int64_t panel = 0; panel * width < s.out; ++panel) {
    auto taps = unwritten<float>(9 * s.in * width);
    winograd_gather({weight.data(), 9 * s.in, 9, 1}, 0, s.in, s.out, panel, taps.data());
    winograd_pack_panel(taps.data(), s.in, all.data() + panel * width * s.in, stride);
  }
  return all;
}

// In every layout of the weights, turned and not, and by parts of the input channels.
TEST(WinogradKernels, Gather) {
  for_winograd_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const int64_t width = winograd_panel(), part = s.in / 4, count = s.in - part;
    std::vector<float> taps_last(data.weight.size());
    for (int64_t i = 0; i < s.out * s.in * 9; ++i) taps_last[i % 9 * s.out * s.in + i / 9] = data.weight[i];
    for (const bool turned : {false, true}) {
      for (const WinogradWeights& w : {WinogradWeights{data.weight.data(), 9 * s.in, 9, 1, turned},
                                       WinogradWeights{taps_last.data(), s.in, 1, s.out * s.in, turned}}) {
        for (int64_t panel = 0; panel * width < s.out; ++panel) {
          auto found = unwritten<float>(9 * count * width);
          winograd_gather(w, part, s.in, s.out, panel, found.data());
          for (int64_t at = 0; at < 9 * count * width; ++at) {
            const int64_t o = panel * width + at % width, i = part + at / width % count, tap = at / width / count;
            const float expected = o < s.out ? data.weight[(o * s.in + i) * 9 + (turned ? 8 - tap : tap)] : 0;
            ASSERT_EQ(found[at], expected);
          }
        }
      }
    }
  });
}

// The tiles in two calls, as threads share them.
template <class Run>
void in_parts(int64_t tiles, const Run& run) {
  run(int64_t{0}, tiles / 3);
  run(tiles / 3, tiles);
}

// The convolution, step by step; y holds what is added if the epilogue says so.
void convolve(const WinogradShape& s, const std::vector<float>& x, const std::vector<float>& weight,
              const WinogradEpilogue& epilogue, std::vector<float>& y) {
  const Frames f(s);
  const int64_t tiles = f.from.tiles(), row = winograd_padded(s.out);
  const auto w = packed(s, weight);
  auto v = unwritten<float>(kPositions * tiles * s.in), m = unwritten<float>(kPositions * tiles * row);
  in_parts(tiles, [&](int64_t first, int64_t end) {
    winograd_input(f.from, x.data(), first, end, {v.data() + first * s.in, tiles * s.in, s.in, s.in, 0});
  });
  for (int64_t p = 0; p < kPositions; ++p) {
    winograd_products(tiles, s.in, row / winograd_panel(), v.data() + p * tiles * s.in, w.data() + p * s.in * row,
                      m.data() + p * tiles * row);
  }
  in_parts(tiles, [&](int64_t first, int64_t end) {
    winograd_output(f.to, {m.data() + first * row, tiles * row, row, row, 0}, first, end, epilogue, y.data());
  });
}

TEST(WinogradKernels, Convolution) {
  for_winograd_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    auto y = unwritten<float>(static_cast<int64_t>(data.g.size()));
    convolve(s, data.x, data.weight, {}, y);
    EXPECT_LT(difference(y, convolution(s, exact(data.x), exact(data.weight))), 1e-5);
  });
}

TEST(WinogradKernels, EpilogueAddsAndActivates) {
  for_winograd_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const Doubles plain = convolution(s, exact(data.x), exact(data.weight));
    for (const Activation activation : kActivations) {
      auto y = data.g;  // also what is added
      convolve(s, data.x, data.weight, {data.bias.data(), y.data(), activation}, y);
      Doubles expected;
      for (size_t i = 0; i < plain.size(); ++i) {
        const double bias = static_cast<double>(data.bias[i % data.bias.size()]);
        expected.push_back(activated(activation, plain[i] + bias + static_cast<double>(data.g[i])));
      }
      EXPECT_LT(difference(y, expected), 1e-5);
    }
  });
}

TEST(WinogradKernels, WeightGradient) {
  for_winograd_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const Frames f(s);
    const int64_t tiles = f.from.tiles(), row = winograd_padded(s.out), lanes = winograd_lanes(),
                  panel = winograd_panel();
    auto v = unwritten<float>(kPositions * tiles * s.in), sums = unwritten<float>(kPositions * s.in * row);
    auto g = filled(kPositions * tiles * row, 0.0f);  // half a panel has no gradients
    auto weight = unwritten<float>(s.out * s.in * 9);
    in_parts(tiles, [&](int64_t first, int64_t end) {
      winograd_input(f.from, data.x.data(), first, end,
                     {v.data() + first * lanes, tiles * s.in, lanes, lanes, tiles * lanes});
      winograd_output_gradient(f.to, data.g.data(), first, end,
                               {g.data() + first * panel, tiles * row, panel, panel, tiles * panel});
    });
    for (int64_t p = 0; p < kPositions; ++p) {
      winograd_gradient_products(tiles, s.in, row / panel, v.data() + p * tiles * s.in, g.data() + p * tiles * row,
                                 sums.data() + p * s.in * row, false);
    }
    winograd_unpack(sums.data(), s.in * row, 0, s.in / 3, s.in, s.out, weight.data());
    winograd_unpack(sums.data(), s.in * row, s.in / 3, s.in, s.in, s.out, weight.data());
    EXPECT_LT(difference(weight, weight_gradient(s, exact(data.x), exact(data.g))), 1e-5);
  });
}

// Tiles are taken in blocks of at most six.
TEST(WinogradKernels, Products) {
  on_every_isa([] {
    const int64_t lanes = winograd_lanes(), width = winograd_panel();
    for (const int64_t tiles : {1, 2, 3, 4, 5, 6, 7, 12, 13, 20}) {
      for (const auto& [in, panels] : {std::pair{lanes, int64_t{1}}, {3 * lanes, 2}}) {
        const int64_t row = panels * width;
        const auto v = normals<float>(tiles * in, 1), w = normals<float>(panels * in * width, 2);
        auto m = unwritten<float>(tiles * row);
        winograd_products(tiles, in, panels, v.data(), w.data(), m.data());
        Doubles expected(m.size());
        for (int64_t at = 0; at < tiles * row; ++at) {
          const int64_t tile = at / row, panel = at % row / width, lane = at % width;
          for (int64_t k = 0; k < in; ++k) {
            expected[at] +=
                static_cast<double>(v[tile * in + k]) * static_cast<double>(w[(panel * in + k) * width + lane]);
          }
        }
        EXPECT_LT(difference(m, expected), tolerance<float>(5)) << tiles;
      }
    }
  });
}

TEST(WinogradKernels, GradientProductsAreAdded) {
  on_every_isa([] {
    const int64_t lanes = winograd_lanes(), width = winograd_panel();
    if (lanes < 4) return;  // winograd_takes() takes no shape there
    for (const int64_t tiles : {1, 2, 7}) {
      const int64_t in = 3 * lanes, panels = 2, row = panels * width;
      const auto v = normals<float>(tiles * in, 1), g = normals<float>(tiles * row, 2);
      auto u = normals<float>(in * row, 3);
      Doubles expected = exact(u);
      for (int64_t at = 0; at < in * row; ++at) {
        const int64_t k = at / row, panel = at % row / width, lane = at % width;
        for (int64_t t = 0; t < tiles; ++t) {
          expected[at] += static_cast<double>(v[(k / lanes * tiles + t) * lanes + k % lanes]) *
                          static_cast<double>(g[(panel * tiles + t) * width + lane]);
        }
      }
      winograd_gradient_products(tiles, in, panels, v.data(), g.data(), u.data(), true);
      EXPECT_LT(difference(u, expected), tolerance<float>(5)) << tiles;
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
