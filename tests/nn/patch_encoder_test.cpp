// The encoder of patches against loops over its definition, which share no code with it; its plan, gradients and what it sees.
#include "convssm/nn/patch_encoder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/nn/frame_plan.h"
#include "tests/support.h"

namespace convssm::nn {
namespace {

using convssm::testing::distance;
using convssm::testing::gradient_error;
using convssm::testing::randn;

VqCoderOptions small_patches() {
  return {.channels = 3, .features = 4, .multipliers = {1, 1, 2}, .blocks = 2, .latent = 5, .patches = true};
}

using Row = std::vector<double>;

Row dense(const PatchEncoder& encoder, const std::string& name, const Row& x) {
  const at::Tensor weight = encoder->named_parameters()[name + ".weight"].to(at::kDouble),
                   bias = encoder->named_parameters()[name + ".bias"].to(at::kDouble);
  Row y(static_cast<size_t>(weight.size(0)));
  for (size_t o = 0; o < y.size(); ++o) {
    y[o] = bias[static_cast<int64_t>(o)].item<double>();
    for (size_t i = 0; i < x.size(); ++i)
      y[o] += weight[static_cast<int64_t>(o)][static_cast<int64_t>(i)].item<double>() * x[i];
  }
  return y;
}

Row swish(Row x) {
  for (double& value : x) value = value / (1 + std::exp(-value));
  return x;
}

// Patches of 4 x 4: the bits of a channel's number are, from the highest, row and column of the quarter, then of the pixel.
Row by_hand(const PatchEncoder& encoder, const at::Tensor& frame, int64_t row, int64_t column) {
  Row patch;
  for (int64_t part = 0; part < 16; ++part) {
    const int64_t y = 4 * row + 2 * (part >> 3 & 1) + (part >> 1 & 1),
                  x = 4 * column + 2 * (part >> 2 & 1) + (part & 1);
    for (int64_t c = 0; c < frame.size(0); ++c) patch.push_back(frame[c][y][x].item<double>());
  }
  Row h = dense(encoder, "conv_in", patch);
  for (const char* block : {"block0", "block1"}) {
    const std::string name = block;
    const Row more = dense(encoder, name + "_2", swish(dense(encoder, name + "_1", swish(h))));
    for (size_t i = 0; i < h.size(); ++i) h[i] += more[i];
  }
  return dense(encoder, "conv_out", swish(h));
}

TEST(PatchEncoder, EqualsLoopsAndItsPlan) {
  torch::NoGradGuard no_grad;
  PatchEncoder encoder(small_patches(), Stream(1));
  for (at::Tensor& p : encoder->parameters()) p.copy_(0.5 * randn(p.sizes(), static_cast<uint64_t>(p.numel())));
  const at::Tensor x = randn({2, 3, 8, 12}, 3).to(at::kFloat), z = encoder(x);
  ASSERT_EQ(z.sizes(), (std::vector<int64_t>{2, 5, 2, 3}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      const Row expected = by_hand(encoder, x[1].to(at::kDouble), i, j);
      for (int64_t c = 0; c < 5; ++c)
        EXPECT_NEAR(z[1][c][i][j].item<double>(), expected[static_cast<size_t>(c)], 1e-5) << i << j << c;
    }
  }
  FramePlan plan({.batch = 2});
  const Buffer in = plan.state("in", 3, 8, 12), out = encoder->plan(plan, plan.activate(in, ops::Activation::identity));
  plan.copy(out, plan.state("out", out.channels, out.height, out.width));
  plan.finish();
  plan.doors().at("in").copy_(x);
  plan.run();
  EXPECT_LT(distance(plan.doors().at("out"), z), 1e-5);
}

TEST(PatchEncoder, SeesThePatchAlone) {
  torch::NoGradGuard no_grad;
  PatchEncoder encoder(small_patches(), Stream(1));
  const at::Tensor x = randn({1, 3, 8, 8}, 3).to(at::kFloat), other = x.clone();
  other.select(2, 5).select(2, 2).fill_(3);  // a pixel of the patch (1,0)
  const at::Tensor changed = (encoder(x) != encoder(other)).any(1);
  EXPECT_TRUE(changed.equal(at::tensor({0, 0, 1, 0}, at::kInt).view({1, 2, 2}).to(at::kBool)));
}

TEST(PatchEncoder, Gradients) {
  VqCoderOptions o = small_patches();
  o.features = 2, o.channels = 1, o.multipliers = {1, 2};
  PatchEncoder encoder(o, Stream(1));
  encoder->to(at::kDouble);
  const at::Tensor x = randn({1, 1, 4, 4}, 3), seed = randn({1, 5, 2, 2}, 4);
  std::vector<at::Tensor> inputs = encoder->parameters();
  inputs.push_back(x);
  EXPECT_LT(gradient_error([&] { return (encoder(x) * seed).sum(); }, inputs), 1e-6);
}

}  // namespace
}  // namespace convssm::nn
