// Whole convolutions by Winograd's algorithm, with the working memory and the division among threads of ops/winograd.cpp:
// few tiles or many weights, where threads share positions, and many tiles, which are taken in pieces.
#include "convssm/ops/winograd_int8.h"
#include "tests/ops/kernels/convolution.h"

namespace convssm::ops::testing {
namespace {

WinogradWeights dense(const WinogradShape& s, const std::vector<float>& weight) {
  return {weight.data(), 9 * s.in, 9, 1};
}

template <class Test>
void for_shapes(const Test& test) {
  for_winograd_shapes(test);
  on_every_isa([&] {
    const int64_t lanes = winograd_lanes();
    if (!winograd_takes(lanes, lanes)) return;
    test(WinogradShape{11, 17, 18, lanes, lanes});  // 275 tiles
    test(WinogradShape{1, 17, 10, lanes, 5472});    // more weights than are taken with all tiles at once
  });
}

TEST(WinogradThreads, Forward) {
  for_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    HugePages<float> packed(winograd_packed_size(s.in, s.out));
    winograd_pack(dense(s, data.weight), s.in, s.out, packed.data());
    auto y = unwritten<float>(static_cast<int64_t>(data.g.size()));
    winograd_forward(s, data.x.data(), packed.data(), {.bias = data.bias.data()}, y.data());
    Doubles expected = convolution(s, exact(data.x), exact(data.weight));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(data.bias[i % data.bias.size()]);
    EXPECT_LT(difference(y, expected), 1e-5);
  });
}

// The gradient of the input: weights turned around, inputs and outputs exchanged.
TEST(WinogradThreads, InputGradient) {
  for_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const WinogradShape back{s.frames, s.height, s.width, s.out, s.in};
    HugePages<float> packed(winograd_packed_size(s.out, s.in));
    winograd_pack({data.weight.data(), 9, 9 * s.in, 1, true}, s.out, s.in, packed.data());
    auto found = unwritten<float>(static_cast<int64_t>(data.x.size()));
    winograd_forward(back, data.g.data(), packed.data(), {}, found.data());
    Doubles expected(data.x.size());
    for_pairs(s, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t o = 0; o < s.out; ++o) {
        for (int64_t i = 0; i < s.in; ++i) {
          expected[from * s.in + i] +=
              static_cast<double>(data.g[to * s.out + o]) * static_cast<double>(data.weight[(o * s.in + i) * 9 + tap]);
        }
      }
    });
    EXPECT_LT(difference(found, expected), 2e-5);
  });
}

TEST(WinogradThreads, WeightGradient) {
  for_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    auto found = unwritten<float>(s.out * s.in * 9);
    winograd_weight_gradient(s, data.x.data(), data.g.data(), found.data());
    EXPECT_LT(difference(found, weight_gradient(s, exact(data.x), exact(data.g))), 2e-5);
  });
}

TEST(WinogradThreads, Int8Forward) {
  for_shapes([](const WinogradShape& s) {
    const ConvData data(s);
    const auto limits = filled(s.in, 3.0f);
    const WinogradInt8Weights packed = winograd_int8_pack(dense(s, data.weight), s.in, s.out, limits.data());
    auto y = unwritten<float>(static_cast<int64_t>(data.g.size()));
    winograd_int8_forward(s, data.x.data(), packed, {.bias = data.bias.data()}, y.data());
    Doubles rounded = exact(data.x);
    for (double& x : rounded) x = std::clamp(std::nearbyint(x * 127 / 3), -127.0, 127.0) * 3 / 127;
    Doubles expected = convolution(s, rounded, exact(data.weight));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(data.bias[i % data.bias.size()]);
    EXPECT_LT(difference(y, expected), 0.01);
  });
}

}  // namespace
}  // namespace convssm::ops::testing
