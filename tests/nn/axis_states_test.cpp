// State spaces along an axis: their scan against explicit kernels, their kernels, initial values, gradients, bad use.
#include "convssm/nn/axis_states.h"

#include "convssm/ops/flop_meter.h"
#include "tests/nn/axis_kernels.h"

namespace convssm::nn::testing {
namespace {

// Parameters under a name, as they are inside of a block.
class NamedAxis : public torch::nn::Module {
 public:
  explicit NamedAxis(const AxisStates& axis) { register_module("axis", axis); }
};

TEST(AxisStates, AScanOfBothDirectionsIsTheConvolutionWithTheirKernels) {
  torch::NoGradGuard no_grad;
  for (const int64_t L : {1, 2, 9}) {
    AxisStates axis(3, 6, Stream(1));
    axis->to(at::kDouble);
    scatter(*axis);
    const Parameters p{NamedAxis(axis)};
    const at::Tensor u = randn({L, 4, 3}, 1), written = axis->kernel(L);
    at::Tensor expected = at::zeros_like(u);
    for (int64_t c = 0; c < 3; ++c) {
      const auto taps = axis_kernel(p, "axis", c, L);
      for (int64_t i = 0; i < L; ++i) {
        for (int64_t j = 0; j < L; ++j) expected[i].select(1, c) += taps[i - j + L - 1] * u[j].select(1, c);
      }
      for (int64_t t = 0; t < 2 * L - 1; ++t) {  // turned: kernel() is for a cross-correlation
        EXPECT_NEAR(written[c][t].item<double>(), taps[2 * L - 2 - t], 1e-12);
      }
    }
    EXPECT_LT(distance(axis(u), expected), 1e-12) << L;
    axis->to(at::kFloat);
    EXPECT_LT(distance(axis(u.to(at::kFloat)).to(at::kDouble), expected), 1e-4) << L;
  }
}

TEST(AxisStates, GradientsAreThoseOfFiniteDifferences) {
  AxisStates axis(2, 4, Stream(1));
  axis->to(at::kDouble);
  const at::Tensor u = randn({4, 2, 2}, 1), g = randn({4, 2, 2}, 2);
  std::vector<at::Tensor> inputs = axis->parameters();
  inputs.push_back(u);
  EXPECT_LT(gradient_error([&] { return (axis(u) * g).sum(); }, inputs), 1e-6);
}

// HiPPO-N eigenvalues in every channel, steps log-uniform on [0.1, 1], C of variance one.
TEST(AxisStates, InitialValues) {
  AxisStates axis(4000, 8, Stream(3));
  const auto named = axis->named_parameters();
  EXPECT_EQ(named["C"].sizes(), at::IntArrayRef({2, 4000, 4, 2}));
  EXPECT_LT(max_abs(named["Lambda_re"] + 0.5), 1e-6);
  const at::Tensor im = named["Lambda_im"];
  EXPECT_TRUE(im.equal(im[0].expand_as(im)));
  const double frequencies = im[0].to(at::kDouble).square().sum().item<double>();
  double expected = 0;  // the squares of all eigenvalues of the skew part: half of its squared entries
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < n; ++k) expected += (n + 0.5) * (k + 0.5);
  }
  EXPECT_NEAR(frequencies, expected, 1e-3);
  const at::Tensor step = named["log_step"].to(at::kDouble);
  EXPECT_GE(step.min().item<double>(), std::log(0.1) - 1e-6);
  EXPECT_LE(step.max().item<double>(), 1e-6);
  EXPECT_NEAR(step.mean().item<double>(), 0.5 * std::log(0.1), 4 * std::log(10.0) / std::sqrt(12.0 * 4000));
  EXPECT_NEAR(named["C"].square().sum(-1).mean().item<double>(), 1, 4 * std::sqrt(1.0 / 32000));
}

TEST(AxisStates, TheReadoutIsCounted) {
  torch::NoGradGuard no_grad;
  AxisStates axis(3, 8, Stream(1));
  ops::FlopMeter meter;
  axis(at::zeros({5, 7, 3}));
  EXPECT_EQ(meter.count(), 2u * 5 * 7 * 3 * 2 * 8);  // both directions, 4 complex states
}

TEST(AxisStates, BadUse) {
  expect_error([] { AxisStates(3, 7, Stream(1)); }, {"[axis_states]", "even", "7"});
  expect_error([] { AxisStates(3, 0, Stream(1)); }, {"[axis_states]", "positive", "0"});
  expect_error([] { AxisStates(3, 8, Stream(1))(at::zeros({5, 7, 4})); }, {"[L,M,3]", "[5,7,4]"});
}

}  // namespace
}  // namespace convssm::nn::testing
