// Convolutions with packed weights against sums written out in float64.
#include "convssm/ops/packed_conv.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/ops/activation.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/quantize_kernels.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::max_abs;
using convssm::testing::randn;

// x [N,H,W,I], weight [O,I,k,k], bias [O] or undefined, float64 -> [N,H,W,O].
at::Tensor naive(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t N = x.size(0), H = x.size(1), W = x.size(2), I = x.size(3), O = weight.size(0), k = weight.size(2);
  const at::Tensor y = at::empty({N, H, W, O}, at::kDouble);
  const auto in = x.accessor<double, 4>(), w = weight.accessor<double, 4>();
  auto out = y.accessor<double, 4>();
  for (int64_t n = 0; n < N; ++n)
    for (int64_t i = 0; i < H; ++i)
      for (int64_t j = 0; j < W; ++j)
        for (int64_t o = 0; o < O; ++o) {
          double sum = bias.defined() ? bias[o].item<double>() : 0;
          for (int64_t a = 0; a < k; ++a)
            for (int64_t b = 0; b < k; ++b) {
              const int64_t row = i + a - (k - 1) / 2, column = j + b - (k - 1) / 2;
              if (row < 0 || row >= H || column < 0 || column >= W) continue;
              for (int64_t c = 0; c < I; ++c) sum += in[n][row][column][c] * w[o][c][a][b];
            }
          out[n][i][j][o] = sum;
        }
  return y;
}

struct PackedCase {
  int64_t in, out, kernel, height, width, frames;
  bool with_bias;
};

const std::vector<PackedCase> kPackedCases{
    {1, 17, 3, 5, 7, 1, true},   {3, 64, 3, 5, 7, 2, true},    {17, 3, 5, 5, 7, 1, false},  {64, 64, 3, 8, 8, 1, true},
    {257, 17, 1, 4, 4, 3, true}, {17, 257, 3, 3, 2, 1, false}, {64, 1, 1, 5, 7, 1, true},   {16, 8, 5, 1, 3, 2, true},
    {8, 8, 2, 5, 4, 1, true},    {257, 64, 3, 4, 5, 1, true},  {32, 40, 3, 16, 16, 1, true}};

struct Problem {
  at::Tensor x, weight, bias, add;  // float32
  explicit Problem(const PackedCase& c)
      : x(randn({c.frames, c.height, c.width, c.in}, 1).to(at::kFloat)),
        weight((randn({c.out, c.in, c.kernel, c.kernel}, 2) / std::sqrt(c.in * c.kernel * c.kernel)).to(at::kFloat)),
        add(randn({c.frames, c.height, c.width, c.out}, 4).to(at::kFloat)) {
    if (c.with_bias) bias = randn({c.out}, 3).to(at::kFloat);
  }
  at::Tensor exact() const {
    return naive(x.to(at::kDouble), weight.to(at::kDouble), bias.defined() ? bias.to(at::kDouble) : bias);
  }
  const float* bias_values() const { return bias.defined() ? bias.data_ptr<float>() : nullptr; }
};

at::Tensor run(const PackedConv& conv, const at::Tensor& x, const ConvEpilogue& epilogue = {}) {
  const ConvShape& s = conv.shape();
  const at::Tensor y = at::full({x.size(0), s.height, s.width, s.out}, NAN, at::kFloat);
  const at::Tensor scratch = at::empty({static_cast<int64_t>(conv.scratch_bytes(x.size(0)))}, at::kByte);
  conv.run(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), scratch.data_ptr(), epilogue);
  return y;
}

ConvShape shape_of(const PackedCase& c) { return {c.in, c.out, c.kernel, c.height, c.width}; }

TEST(PackedConv, IsTheWrittenOutSum) {
  for (const PackedCase& c : kPackedCases) {
    const Problem p(c);
    const PackedConv conv(shape_of(c), p.weight.data_ptr<float>(), p.bias_values());
    EXPECT_LT(distance(run(conv, p.x).to(at::kDouble), p.exact()), 2e-5) << c.in << " " << c.out << " " << c.kernel;
  }
}

TEST(PackedConv, AnyNumberOfFramesOneAfterTheOther) {
  const Problem p({16, 24, 3, 5, 7, 3, true});
  const PackedConv conv({16, 24, 3, 5, 7}, p.weight.data_ptr<float>(), p.bias_values());
  const at::Tensor all = p.exact();
  for (const int64_t frames : {3, 1, 2, 1}) {
    EXPECT_LT(distance(run(conv, p.x.slice(0, 0, frames)).to(at::kDouble), all.slice(0, 0, frames)), 4e-6) << frames;
  }
}

TEST(PackedConv, Epilogues) {
  const PackedCase c{17, 33, 3, 5, 7, 2, true};
  const Problem p(c);
  const PackedConv conv(shape_of(c), p.weight.data_ptr<float>(), p.bias_values());
  const at::Tensor plain = p.exact(), sum = plain + p.add;
  for (const auto activation : {Activation::identity, Activation::relu, Activation::gelu, Activation::swish,
                                Activation::elu, Activation::quick_gelu, Activation::gelu_erf}) {
    const at::Tensor with_sum = run(conv, p.x, {p.add.data_ptr<float>(), activation});
    EXPECT_LT(distance(with_sum.to(at::kDouble), activate_plain(sum, activation)), 4e-6) << name(activation);
    EXPECT_LT(distance(run(conv, p.x, {nullptr, activation}).to(at::kDouble), activate_plain(plain, activation)), 4e-6);
  }
}

// [I] over all pixels of all frames.
std::pair<at::Tensor, at::Tensor> range_of(const at::Tensor& x) {
  const at::Tensor pixels = x.flatten(0, 2);
  return {std::get<0>(pixels.min(0)).contiguous(), std::get<0>(pixels.max(0)).contiguous()};
}

TEST(PackedConvInt8, IsTheSumWithinItsRoundings) {
  for (const PackedCase& c : kPackedCases) {
    const Problem p(c);
    const auto [low, high] = range_of(p.x);
    const PackedConv conv(shape_of(c), p.weight.data_ptr<float>(), p.bias_values(),
                          {low.data_ptr<float>(), high.data_ptr<float>()});
    const at::Tensor exact = p.exact(), found = run(conv, p.x).to(at::kDouble);
    // Half a step of each: inputs of width (high - low) / 255, weights of the largest / 64.
    const at::Tensor step = (at::maximum(high, at::zeros({})) - at::minimum(low, at::zeros({}))).to(at::kDouble) / 255;
    const double area = static_cast<double>(c.kernel * c.kernel);
    const at::Tensor w = p.weight.to(at::kDouble).abs(), range = step.view({1, -1, 1, 1}) * 255;
    const at::Tensor from_input = (w * step.view({1, -1, 1, 1}) / 2).sum({1, 2, 3});
    const at::Tensor from_weights = (w * range).flatten(1).amax(1) / 128 * area * static_cast<double>(c.in);
    const at::Tensor bound = from_input + from_weights;
    EXPECT_LT(max_abs((found - exact) / bound), 1) << c.in << " " << c.out << " " << c.kernel;
    // Errors are far below their bound where there are many of them.
    const double noise = (found - exact).std().item<double>(), signal = exact.std().item<double>();
    EXPECT_LT(noise, 0.03 * signal) << c.in << " " << c.out << " " << c.kernel;
    EXPECT_GT(noise, 0) << "not in integers";
  }
}

TEST(PackedConvInt8, EdgesOfAnOffsetRangeAreZero) {
  const at::Tensor x = at::full({1, 4, 4, 8}, 3.0f), weight = at::ones({2, 8, 3, 3});
  const at::Tensor low = at::full({8}, -1.0f), high = at::full({8}, 4.0f);
  const PackedConv conv({8, 2, 3, 4, 4}, weight.data_ptr<float>(), nullptr,
                        {low.data_ptr<float>(), high.data_ptr<float>()});
  const at::Tensor exact = naive(x.to(at::kDouble), weight.to(at::kDouble), {});
  EXPECT_LT(max_abs(run(conv, x).to(at::kDouble) / exact - 1), 5.0 / 255);
}

// The largest inputs and weights with one sign: sums of 16 bits would overflow.
TEST(PackedConvInt8, ExtremesDoNotOverflow) {
  const at::Tensor x = at::ones({1, 6, 6, 64}), weight = at::ones({8, 64, 3, 3}), low = at::zeros({64});
  const PackedConv conv({64, 8, 3, 6, 6}, weight.data_ptr<float>(), nullptr,
                        {low.data_ptr<float>(), x.data_ptr<float>()});
  const at::Tensor exact = naive(x.to(at::kDouble), weight.to(at::kDouble), {});
  EXPECT_LT(distance(run(conv, x).to(at::kDouble), exact) / max_abs(exact), 5e-4);
}

// The largest weight in one channel of each pair before the largest inputs: exact if, and only if, the sums of 16 bits are
// over channels (even, odd). Half as large in both: exact as well.
TEST(PackedConvInt8, SumsOfPairsDoNotOverflow) {
  for (const auto& pattern : {at::tensor({1.0f, 0.0f, 1.0f, 0.0f}), at::tensor({0.0f, 1.0f, 1.0f, 0.0f})}) {
    for (const int64_t kernel : {1, 3}) {
      const at::Tensor x = at::ones({1, 6, 6, 64}), low = at::zeros({64});
      const at::Tensor weight = pattern.repeat({16}).view({1, 64, 1, 1}).expand({24, 64, kernel, kernel}).contiguous();
      const PackedConv conv({64, 24, kernel, 6, 6}, weight.data_ptr<float>(), nullptr,
                            {low.data_ptr<float>(), x.data_ptr<float>()});
      const at::Tensor exact = naive(x.to(at::kDouble), weight.to(at::kDouble), {});
      const double rounding = kernel == 1 ? 1e-5 : 5e-4;  // 3x3 may run by Winograd's algorithm
      EXPECT_LT(distance(run(conv, x).to(at::kDouble), exact) / max_abs(exact), rounding) << kernel;
    }
  }
}

TEST(PackedConvInt8, ValuesOutsideOfTheRangeAreCut) {
  const at::Tensor x = at::tensor({-9.0f, 9.0f, 0.5f}).view({1, 1, 3, 1}), weight = at::ones({1, 1, 1, 1});
  const float low = -1, high = 1;
  const PackedConv conv({1, 1, 1, 1, 3}, weight.data_ptr<float>(), nullptr, {&low, &high});
  const at::Tensor expected = at::tensor({-1.0f, 1.0f, 0.5f}).view({1, 1, 3, 1});
  EXPECT_LT(distance(run(conv, x), expected), 2.0 / 255);
}

TEST(Quantize, KernelsOfEveryInstructionSet) {
  const at::Tensor x = randn({5, 37}, 1).to(at::kFloat) * 100, f = randn({37}, 2).abs().to(at::kFloat);
  const at::Tensor z = at::floor(randn({37}, 3).abs() * 100).to(at::kFloat);
  const at::Tensor expected = at::clamp(at::round(x.to(at::kDouble) * f.to(at::kDouble) + z), 0, 255);
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    const at::Tensor q = at::empty({5, 37}, at::kByte), low = at::zeros({37}), high = at::zeros({37});
    quantize_rows({5, 37, x.data_ptr<float>(), f.data_ptr<float>(), z.data_ptr<float>(), q.data_ptr<uint8_t>()});
    EXPECT_TRUE(q.to(at::kDouble).equal(expected)) << isa;
    widen_range({5, 37, x.data_ptr<float>(), low.data_ptr<float>(), high.data_ptr<float>()});
    EXPECT_TRUE(low.equal(at::minimum(std::get<0>(x.min(0)), at::zeros({})))) << isa;
    EXPECT_TRUE(high.equal(at::maximum(std::get<0>(x.max(0)), at::zeros({})))) << isa;
  }
  force_isa("");
}

TEST(PackedConv, BadUse) {
  const float one = 1, bad = NAN;
  expect_error([&] { PackedConv({1, 1, 0, 4, 4}, &one, nullptr); }, {"packed_conv", "kernel 0"});
  expect_error([&] { PackedConv({1, 1, 1, 4, 4}, &one, nullptr, {&bad, &one}); }, {"channel 0", "nan"});
}

}  // namespace
}  // namespace convssm::ops::testing
