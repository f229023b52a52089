// Convolutions by Winograd's algorithm: against float64 on every instruction set, their gradients, what is kept of the
// weights, and who decides.
#include "convssm/ops/winograd.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/base/threads.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/conv_algorithm.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/winograd_conv2d.h"
#include "convssm/ops/winograd_int8.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::max_abs;
using convssm::testing::randn;

struct Case {
  int64_t frames, height, width, in, out;
};

// Whole tiles and cut ones, one tile, few tiles (positions split over threads) and many, padded panels.
const std::vector<Case> kCases{{1, 4, 4, 16, 16},   {2, 5, 7, 16, 32},   {1, 1, 1, 32, 16}, {3, 6, 3, 48, 16},
                               {1, 16, 16, 64, 64}, {9, 17, 18, 32, 48}, {40, 8, 8, 16, 80}};

struct Inputs {
  at::Tensor x, weight, bias, g;
  explicit Inputs(const Case& c)
      : x(randn({c.frames, c.in, c.height, c.width}, 1).to(at::kFloat)),
        weight((randn({c.out, c.in, 3, 3}, 2) / 12).to(at::kFloat)),
        bias(randn({c.out}, 3).to(at::kFloat)),
        g(randn({c.frames, c.out, c.height, c.width}, 4).to(at::kFloat)) {}
  std::vector<at::Tensor> leaves(at::ScalarType type) const {
    std::vector<at::Tensor> all;
    for (const auto& tensor : {x, weight, bias})
      all.push_back(tensor.detach().to(type, false, true).requires_grad_(true));
    return all;
  }
};

double relative(const at::Tensor& found, const at::Tensor& expected) {
  return distance(found.to(at::kDouble), expected) / max_abs(expected);
}

WinogradWeights dense(const at::Tensor& weight) { return {weight.data_ptr<float>(), 9 * weight.size(1), 9, 1}; }

TEST(Winograd, MatchesDirectConvolutionInFloat64WithGradients) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const Case& c : kCases) {
      if (!winograd_takes(c.in, c.out)) continue;
      const Inputs in(c);
      const auto floats = in.leaves(at::kFloat), doubles = in.leaves(at::kDouble);
      const at::Tensor found = winograd_conv2d(floats[0], floats[1], floats[2]);
      const at::Tensor expected = at::conv2d(doubles[0], doubles[1], doubles[2], 1, 1);
      EXPECT_LT(relative(found, expected), 5e-6) << isa;
      const auto grads = torch::autograd::grad({found}, floats, {in.g});
      const auto exact = torch::autograd::grad({expected}, doubles, {in.g.to(at::kDouble)});
      for (size_t i = 0; i < grads.size(); ++i) {
        EXPECT_EQ(grads[i].sizes(), exact[i].sizes());
        EXPECT_LT(relative(grads[i], exact[i]), 1e-5) << isa << ", gradient " << i << ", " << c.frames << " frames";
      }
    }
  }
  force_isa("");
}

TEST(Winograd, TheEpilogueAddsAndActivates) {
  const Case c{2, 6, 9, 16, 32};
  const Inputs in(c);
  const auto nhwc = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = in.x.contiguous(nhwc);
  at::Tensor packed = at::empty({static_cast<int64_t>(winograd_packed_size(c.in, c.out))});
  winograd_pack(dense(in.weight), c.in, c.out, packed.data_ptr<float>());
  at::Tensor y = in.g.contiguous(nhwc).clone();
  winograd_forward({c.frames, c.height, c.width, c.in, c.out}, x.data_ptr<float>(), packed.data_ptr<float>(),
                   {in.bias.data_ptr<float>(), y.data_ptr<float>(), Activation::gelu}, y.data_ptr<float>());
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
  const at::Tensor sum = at::conv2d(wide(in.x), wide(in.weight), wide(in.bias), 1, 1) + wide(in.g);
  EXPECT_LT(relative(y, at::gelu(sum, "tanh")), 5e-6);
}

// What the 8-bit variant should compute: inputs cut off and rounded as documented, weights nearly exact.
TEST(WinogradInt8, RoundsInputsToEightBitsAndNothingElseMuch) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const Case& c : kCases) {
      if (!winograd_int8_takes(c.in, c.out)) continue;
      const Inputs in(c);
      const at::Tensor limits = at::linspace(0.5, 3, c.in), steps = (limits / 127).view({1, c.in, 1, 1});
      const at::Tensor x = in.x.contiguous(at::MemoryFormat::ChannelsLast);
      const auto packed = winograd_int8_pack(dense(in.weight), c.in, c.out, limits.data_ptr<float>());
      at::Tensor y = at::empty_like(in.g, at::MemoryFormat::ChannelsLast);
      winograd_int8_forward({c.frames, c.height, c.width, c.in, c.out}, x.data_ptr<float>(), packed,
                            {.bias = in.bias.data_ptr<float>()}, y.data_ptr<float>());
      const at::Tensor rounded = at::clamp(at::round(in.x / steps), -127, 127) * steps;
      const at::Tensor expected =
          at::conv2d(rounded.to(at::kDouble), in.weight.to(at::kDouble), in.bias.to(at::kDouble), 1, 1);
      EXPECT_LT(relative(y, expected), 0.004) << isa;
      EXPECT_GT(relative(at::conv2d(x, in.weight, in.bias, 1, 1), expected), 0.01);  // rounding is really there
    }
  }
  force_isa("");
}

// The largest inputs and weights of one sign: sums of 32 bits must not wrap around.
TEST(WinogradInt8, TheWorstCaseDoesNotOverflow) {
  const int64_t C = 512;
  const at::Tensor x = at::full({1, 8, 8, C}, 1000.0), limits = at::full({C}, 1000.0);
  const at::Tensor weight = at::ones({16, C, 3, 3});
  const auto packed = winograd_int8_pack(dense(weight), C, 16, limits.data_ptr<float>());
  at::Tensor y = at::empty({1, 8, 8, 16});
  winograd_int8_forward({1, 8, 8, C, 16}, x.data_ptr<float>(), packed, {}, y.data_ptr<float>());
  EXPECT_NEAR(y[0][3][3][5].item<double>() / (9.0 * 1000 * C), 1, 1e-3);
  EXPECT_NEAR(y[0][0][0][5].item<double>() / (4.0 * 1000 * C), 1, 1e-3);
}

TEST(Winograd, BytesDoNotDependOnThreads) {
  const Inputs in({30, 12, 12, 32, 32});
  const auto run = [&] {
    const auto leaves = in.leaves(at::kFloat);
    const at::Tensor y = winograd_conv2d(leaves[0], leaves[1], leaves[2]);
    auto all = torch::autograd::grad({y}, {leaves[0], leaves[1]}, {in.g});
    all.push_back(y);
    return all;
  };
  const int before = threads();
  const auto many = run();
  set_threads(1);
  const auto one = run();
  set_threads(before);
  for (size_t i = 0; i < many.size(); ++i) EXPECT_TRUE(at::equal(many[i], one[i])) << i;
}

TEST(Winograd, HasSecondDerivatives) {
  const Inputs in({1, 4, 4, 16, 16});
  const auto floats = in.leaves(at::kFloat), doubles = in.leaves(at::kDouble);
  const auto second = [&](const std::vector<at::Tensor>& leaves, const at::Tensor& y) {
    const auto first = torch::autograd::grad({y.square().sum()}, {leaves[0]}, {}, true, true);
    return torch::autograd::grad({first[0].square().sum()}, {leaves[1]})[0];
  };
  const at::Tensor expected = second(doubles, at::conv2d(doubles[0], doubles[1], doubles[2], 1, 1));
  EXPECT_LT(relative(second(floats, winograd_conv2d(floats[0], floats[1], floats[2])), expected), 1e-5);
}

TEST(Winograd, KeptWeightsFollowEveryChange) {
  const Inputs in({1, 8, 8, 16, 16});
  at::Tensor weight = in.weight.clone();
  const auto error = [&] {
    at::NoGradGuard no_grad;
    const at::Tensor found = winograd_conv2d(in.x, weight, {});
    return relative(found, at::conv2d(in.x.to(at::kDouble), weight.to(at::kDouble), {}, 1, 1));
  };
  EXPECT_LT(error(), 5e-6);
  weight.mul_(2);
  EXPECT_LT(error(), 5e-6);
  for (int i = 0; i < 20; ++i) {  // new tensors at the address of old ones
    weight = at::Tensor();
    weight = in.weight * (i + 3);
    EXPECT_LT(error(), 5e-6);
  }
  weight.requires_grad_(true);
  EXPECT_LT(error(), 5e-6);
  winograd_conv2d(in.x, weight, {}).sum().backward();
  *weight.data_ptr<float>() += 100;  // as an optimizer may, unseen by libtorch
  winograd_conv2d(in.x, weight, {});
  EXPECT_LT(error(), 5e-6);
}

TEST(ConvAlgorithm, DecidesWhoComputes) {
  at::NoGradGuard no_grad;
  const Inputs in({2, 8, 8, 32, 32});
  const at::Tensor direct = at::conv2d(in.x.contiguous(at::MemoryFormat::ChannelsLast),
                                       in.weight.contiguous(at::MemoryFormat::ChannelsLast), {}, 1, 1);
  const at::Tensor winograd = winograd_conv2d(in.x, in.weight, {});
  ASSERT_FALSE(at::equal(direct, winograd));
  EXPECT_TRUE(at::equal(ops::conv2d(in.x, in.weight), winograd));
  set_conv_algorithm(ConvAlgorithm::direct);
  EXPECT_TRUE(at::equal(ops::conv2d(in.x, in.weight), direct));
  set_conv_algorithm(ConvAlgorithm::measured);
  const at::Tensor found = ops::conv2d(in.x, in.weight);
  set_conv_algorithm(ConvAlgorithm::automatic);
  const auto trials = conv_trials();
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].shape, (ConvKey{2, 8, 8, 32, 32}));
  EXPECT_TRUE(at::equal(found, trials[0].winograd_ms < trials[0].direct_ms ? winograd : direct));
}

TEST(ConvAlgorithm, NamesRoundTripAndOthersAreRefused) {
  for (const auto one : {ConvAlgorithm::automatic, ConvAlgorithm::measured, ConvAlgorithm::direct}) {
    EXPECT_EQ(parse_conv_algorithm(name(one)), one);
  }
  expect_error([] { parse_conv_algorithm("directt"); }, {"directt", "direct"});
}

TEST(ConvAlgorithm, ShapesThatWinogradDoesNotTakeRunDirectly) {
  at::NoGradGuard no_grad;
  for (const Case& c : {Case{1, 8, 8, 1, 32}, Case{1, 8, 8, 17, 16}, Case{2, 8, 8, 16, 3}}) {
    const Inputs in(c);
    const at::Tensor expected = at::conv2d(in.x.to(at::kDouble), in.weight.to(at::kDouble), {}, 1, 1);
    EXPECT_LT(relative(ops::conv2d(in.x, in.weight), expected), 1e-6);
  }
}

}  // namespace
}  // namespace convssm::ops::testing
