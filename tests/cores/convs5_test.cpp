// Facts about ConvS5 alone: parameter counts of the paper, shift equivariance, the S5 inside it, dropout.
#include "convssm/cores/convs5.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/cores/s5.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::distance;
using testing::randn;

TEST(ConvS5, ParameterCountsOfThePaper) {
  const std::vector<std::array<int64_t, 3>> published{
      {128, 128, 591040}, {256, 256, 2361728}, {512, 512, 9442048}, {512, 1024, 14161408}};
  for (const auto& [features, state_size, expected] : published) {
    const ConvS5 core(ConvS5Options{.features = features, .state_size = state_size});
    int64_t count = 0;
    for (const auto& p : core->parameters()) count += p.numel();
    EXPECT_EQ(count, expected);
  }
}

// Per layer: B and C 2 P U k^2 each, the block and the norm; Lambda and log_step 3 P, or nu and theta 2 P; x0 2 P.
TEST(ConvS5, ParameterCountsOfVariants) {
  const int64_t U = 16, P = 6;
  const auto count = [&](ConvS5Options o) {
    o.features = U;
    o.state_size = 2 * P;
    o.groups = 4;
    int64_t total = 0;
    for (const auto& p : ConvS5(o)->parameters()) total += p.numel();
    return total - 2 * (2 * P * U * 9) - 2 * U;  // of the states and the block
  };
  const int64_t resnet = 18 * U * U + 6 * U;
  EXPECT_EQ(count({}), 3 * P + resnet);
  EXPECT_EQ(count({.init = StateInit::lru}), 2 * P + resnet);
  EXPECT_EQ(count({.learned_state = true}), 5 * P + resnet);
  EXPECT_EQ(count({.dynamics = InputDynamics::selective}), 3 * P + P * U + resnet);
  EXPECT_EQ(count({.dynamics = InputDynamics::gated}), 3 * P + 2 * P * (9 * U + 1) + resnet);
  EXPECT_EQ(count({.dynamics = InputDynamics::liquid}), 5 * P + resnet);
  EXPECT_EQ(count({.output_gate = ops::Activation::swish}), 3 * P + resnet + 9 * U * U + U + U * U + U);
  EXPECT_EQ(count({.activation_block = nn::BlockKind::sparse}), 3 * P + 2 * U * U + 24 * U);
  EXPECT_EQ(count({.activation_block = nn::BlockKind::convnext}), 3 * P + 8 * U * U + 58 * U);
  EXPECT_EQ(count({.activation_block = nn::BlockKind::s4nd}), 3 * P + 2 * U * U + 3 * U + 2 * U * 49);
}

// At their initial values, dynamics and gates are the layer of the paper, whatever the timing; away from them they are not.
TEST(ConvS5, InputDependentDynamicsBeginAsThePaper) {
  torch::NoGradGuard no_grad;
  const at::Tensor x = randn({6, 2, 8, 4, 3}, 1), dt = randn({6, 2}, 2).abs() + 0.1, resets = at::zeros({6}, at::kBool);
  resets[3].fill_(true);
  const ConvS5Options plain{.features = 8, .state_size = 12, .layers = 2, .groups = 4};
  ConvS5Options selective = plain, gated = plain, liquid = plain, gate = plain, gelu_gate = plain;
  selective.dynamics = InputDynamics::selective, gated.dynamics = InputDynamics::gated,
  liquid.dynamics = InputDynamics::liquid;
  gate.output_gate = ops::Activation::swish, gelu_gate.output_gate = ops::Activation::gelu_erf;
  for (const StateInit init : {StateInit::hippo, StateInit::lru}) {
    for (ConvS5Options options : {selective, gated, liquid, gate, gelu_gate}) {
      const bool lru = init == StateInit::lru;
      if (lru && options.dynamics == InputDynamics::selective) continue;
      ConvS5Options base = plain;
      base.init = options.init = init;
      ConvS5 expected(base), varied(options);
      expected->to(at::kDouble), varied->to(at::kDouble);
      const Timing timing = lru ? Timing{{}, resets, 1} : Timing{dt, resets, 0.5};
      const double bound = options.output_gate ? 1e-6 : 1e-11;  // the bias of a gate is rounded to float32
      EXPECT_LT(distance(varied->forward(x, {}, timing).y, expected->forward(x, {}, timing).y), bound);
      for (auto& item : varied->named_parameters()) {
        const bool own = item.key().find(".dynamics.") != std::string::npos || item.key().ends_with("gate.weight");
        if (own) item.value().add_(randn(item.value().sizes(), 3), 0.5);
      }
      EXPECT_GT(distance(varied->forward(x, {}, timing).y, expected->forward(x, {}, timing).y), 1e-2);
    }
  }
}

// No input makes a state grow: with coefficients within the unit disc a state is at most what came in,
// |x_L| <= |x_0| + sum of |b_k|; without a new input, x_0 alone is the bound.
TEST(ConvS5, InputDependentDynamicsStayBounded) {
  torch::NoGradGuard no_grad;
  for (const InputDynamics dynamics : {InputDynamics::selective, InputDynamics::gated, InputDynamics::liquid}) {
    const ConvS5Options options{.features = 8, .state_size = 12, .dynamics = dynamics, .groups = 4};
    ConvS5 core(options);
    for (auto& item : core->named_parameters()) {
      if (item.key().find(".dynamics.") != std::string::npos) item.value().copy_(10 * randn(item.value().sizes(), 3));
      if (item.key().ends_with("ssm.B")) item.value().mul_(1e-3);  // the signals are large, what comes in is not
    }
    const at::Tensor x = 10 * randn({300, 1, 8, 2, 2}, 4).to(at::kFloat),
                     start = randn({1, 12, 2, 2}, 5).to(at::kFloat);
    State before, none;
    before.set("layers.0.x", start), none.set("layers.0.x", at::zeros_like(start));
    const at::Tensor with = core->forward(x, before).state.get("layers.0.x"),
                     without = core->forward(x, none).state.get("layers.0.x");
    const auto size = [](const at::Tensor& s) {
      return at::sqrt(s.narrow(1, 0, 6).square() + s.narrow(1, 6, 6).square());
    };
    // The recurrence is linear in its state: the difference is what is left of x_0.
    EXPECT_TRUE((size(with - without) <= size(start) + 1e-4).all().item<bool>()) << name(dynamics);
    EXPECT_TRUE(at::isfinite(with).all().item<bool>());
  }
}

// A learned state is the state before the first frame: giving it as a state is the same. At the start it is zero.
TEST(ConvS5, ALearnedStateIsTheStateBeforeTheFirstFrame) {
  torch::NoGradGuard no_grad;
  ConvS5Options options{.features = 8, .state_size = 12, .layers = 2, .groups = 4};
  ConvS5 plain(options);
  options.learned_state = true;
  ConvS5 learned(options);
  for (auto* core : {&plain, &learned}) (*core)->to(at::kDouble);
  const at::Tensor x = randn({5, 3, 8, 4, 3}, 1);
  EXPECT_LT(distance(learned->forward(x).y, plain->forward(x).y), 1e-14);
  State before;
  for (int i = 0; i < 2; ++i) {
    const at::Tensor x0 = randn({12}, 2 + i);
    learned->named_parameters()["layers." + std::to_string(i) + ".ssm.x0"].copy_(x0);
    before.set("layers." + std::to_string(i) + ".x", x0.view({1, 12, 1, 1}).expand({3, 12, 4, 3}));
  }
  const at::Tensor y = learned->forward(x).y;
  EXPECT_LT(distance(y, plain->forward(x, before).y), 1e-12);
  EXPECT_GT(distance(y, plain->forward(x).y), 0.1);
  // A state that is given is used as it is.
  const State other = plain->forward(randn({2, 3, 8, 4, 3}, 9)).state;
  EXPECT_LT(distance(learned->forward(x, other).y, plain->forward(x, other).y), 1e-12);
  // What is forgotten becomes the learned state, of the sample that is reset alone.
  const at::Tensor resets = at::zeros({5, 3}, at::kBool);
  resets[2][1].fill_(true);
  for (const at::Tensor& dt : {at::Tensor(), at::full({5}, 0.7, at::kDouble)}) {
    const at::Tensor cut = learned->forward(x, {}, {dt, resets, 1}).y;
    const Timing later = dt.defined() ? Timing{dt.slice(0, 2), {}, 1} : Timing{};
    const at::Tensor again = learned->forward(x.slice(0, 2), {}, later).y;
    EXPECT_LT(distance(cut.slice(0, 2).select(1, 1), again.select(1, 1)), 1e-12);
    EXPECT_LT(distance(cut.select(1, 0), learned->forward(x, {}, {dt, {}, 1}).y.select(1, 0)), 1e-12);
  }
}

// lru in the words of hippo: with log_step zero the eigenvalues of continuous time are the logarithms of those of discrete
// time, and B is scaled by the quotient of the two input factors.
TEST(ConvS5, LruIsADiagonalStateSpaceOfOtherParameters) {
  torch::NoGradGuard no_grad;
  ConvS5Options options{.features = 8, .state_size = 12, .groups = 4};
  ConvS5 hippo(options);
  options.init = StateInit::lru;
  options.max_phase = 3;  // below pi, where the logarithm is the angle
  ConvS5 lru(options);
  hippo->to(at::kDouble);
  lru->to(at::kDouble);
  auto to = hippo->named_parameters();
  const auto from = lru->named_parameters();
  for (auto& item : to) {
    if (from.contains(item.key())) item.value().copy_(from[item.key()]);
  }
  const at::Tensor decay = from["layers.0.ssm.nu"].exp(), phase = from["layers.0.ssm.theta"].exp();
  const at::Tensor log_lambda = at::complex(-decay, phase), lambda = log_lambda.exp();
  to["layers.0.ssm.Lambda_re"].copy_(-decay);
  to["layers.0.ssm.Lambda_im"].copy_(phase);
  to["layers.0.ssm.log_step"].zero_();
  const at::Tensor factor = at::sqrt(1 - lambda.abs().square()) / ((lambda - 1) / log_lambda);
  const at::Tensor b = at::view_as_complex(from["layers.0.ssm.B"].contiguous()) * factor.unsqueeze(1);
  to["layers.0.ssm.B"].copy_(at::view_as_real(b));
  const at::Tensor x = randn({9, 2, 8, 4, 3}, 1);
  EXPECT_LT(distance(lru->forward(x).y, hippo->forward(x).y), 1e-10);
}

TEST(ConvS5, IsShiftEquivariantAwayFromTheBorders) {
  torch::NoGradGuard no_grad;
  ConvS5 core(ConvS5Options{.features = 8, .state_size = 8, .activation_block = nn::BlockKind::half_glu});
  const at::Tensor x = randn({5, 1, 8, 14, 14}, 1).to(at::kFloat);
  const at::Tensor y = core->forward(x).y, shifted = core->forward(x.roll({2, 1}, {3, 4})).y;
  const auto inner = [](const at::Tensor& t, int64_t h, int64_t w) { return t.narrow(3, h, 6).narrow(4, w, 6); };
  EXPECT_LT(distance(inner(shifted, 6, 5), inner(y, 4, 4)), 1e-5);
}

// Pointwise kernels: every pixel is an S5 with the same parameters (its dense layer reading gelu(y), no D).
TEST(ConvS5, WithPointwiseKernelsIsAnS5PerPixel) {
  torch::NoGradGuard no_grad;
  const int64_t U = 8;
  ConvS5SSM conv(ConvS5Options{.features = U, .state_size = 12, .kernel_b = 1, .kernel_c = 1}, Stream(5));
  S5 s5(S5Options{.features = U, .state_size = 12, .wrapper = {.use_norm = false, .prenorm = false, .skip = false}});
  auto theirs = s5->named_parameters();
  const auto ours = conv->named_parameters();
  for (const char* name : {"Lambda_re", "Lambda_im", "log_step", "B"}) {
    theirs[std::string("layers.0.ssm.") + name].copy_(
        ours[name].view(theirs[std::string("layers.0.ssm.") + name].sizes()));
  }
  theirs["layers.0.ssm.C"].copy_(ours["C"][0][0].transpose(0, 1));
  theirs["layers.0.ssm.D"].zero_();
  const at::Tensor x = randn({9, 2, U, 3, 4}, 1).to(at::kFloat);
  const at::Tensor y = conv->forward(x.flatten(0, 1), 9, {}, {}).first.view({9, 2, U, 3, 4});
  const at::Tensor g = at::gelu(y, "tanh");
  const auto dense =
      at::linear(g.permute({0, 1, 3, 4, 2}), theirs["layers.0.dense.weight"], theirs["layers.0.dense.bias"]);
  const at::Tensor expected = g * at::sigmoid(dense).permute({0, 1, 4, 2, 3});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const at::Tensor pixel = s5->forward(x.select(4, j).select(3, i)).y;
      EXPECT_LT(distance(pixel, expected.select(4, j).select(3, i)), 1e-5);
    }
  }
}

TEST(ConvS5, DropoutIsOneMaskForAllFrames) {
  ConvS5Options options{.features = 8, .state_size = 8, .activation_block = nn::BlockKind::half_glu};
  options.wrapper = {.use_norm = false, .prenorm = false, .skip = false, .dropout = 0.5};
  ConvS5 core(options);
  const at::Tensor x = randn({6, 2, 8, 4, 4}, 1).to(at::kFloat);
  const at::Tensor dropped = core->forward(x).y == 0;
  for (int64_t k = 1; k < 6; ++k) EXPECT_TRUE(at::equal(dropped[k], dropped[0]));
  EXPECT_NEAR(dropped[0].to(at::kDouble).mean().item<double>(), 0.5, 0.1);
  core->eval();
  EXPECT_FALSE((core->forward(x).y == 0).any().item<bool>());
}

}  // namespace
}  // namespace convssm::cores
