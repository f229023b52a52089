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
