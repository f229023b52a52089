// The coders of the VQ-GAN: plans against modules, gradients against finite differences, recomputation, sizes. Their numbers
// are checked against PyTorch in tests/models/vqgan_test.cpp.
#include "convssm/nn/vq_coder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/patch_discriminator.h"
#include "convssm/nn/recompute.h"
#include "tests/support.h"

namespace convssm::nn {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::randn;

VqCoderOptions small_vq_coder() {
  return {.channels = 3,
          .features = 8,
          .multipliers = {1, 2},
          .blocks = 1,
          .attention = {4},
          .latent = 6,
          .groups = 4,
          .height = 8};
}

at::Tensor by_plan(const at::Tensor& x, const std::function<Buffer(FramePlan&, Buffer)>& build) {
  FramePlan plan({.batch = x.size(0)});
  const Buffer in = plan.state("in", x.size(1), x.size(2), x.size(3));
  const Buffer y = build(plan, plan.activate(in, ops::Activation::identity));
  plan.copy(y, plan.state("out", y.channels, y.height, y.width));
  plan.finish();
  plan.doors().at("in").copy_(x);
  for (int k = 0; k < 2; ++k) plan.run();
  return plan.doors().at("out").clone();
}

TEST(VqCoder, PlansAreTheModules) {
  torch::NoGradGuard no_grad;
  VqEncoder encoder(small_vq_coder(), Stream(1));
  VqDecoder decoder(small_vq_coder(), Stream(2));
  const at::Tensor x = randn({2, 3, 8, 12}, 3).to(at::kFloat), z = randn({2, 6, 4, 6}, 4).to(at::kFloat);
  const at::Tensor codes = encoder(x), frames = decoder(z);
  EXPECT_EQ(codes.sizes(), z.sizes());
  EXPECT_EQ(frames.sizes(), x.sizes());
  EXPECT_LT(distance(by_plan(x, [&](FramePlan& p, Buffer b) { return encoder->plan(p, b); }), codes), 2e-5);
  EXPECT_LT(distance(by_plan(z, [&](FramePlan& p, Buffer b) { return decoder->plan(p, b); }), frames), 2e-5);
}

// A stride of 2 with zeros right and below, by libtorch.
TEST(VqCoder, DownPadsAtTheEnd) {
  const at::Tensor x = randn({2, 5, 6, 4}, 1).to(at::kFloat), w = randn({7, 5, 3, 3}, 2).to(at::kFloat),
                   b = randn({7}, 3).to(at::kFloat);
  const at::Tensor expected = at::conv2d(at::constant_pad_nd(x, {0, 1, 0, 1}), w, b, 2);
  EXPECT_LT(distance(by_plan(x, [&](FramePlan& p, Buffer in) { return p.conv_down(in, w, b); }), expected), 1e-5);
}

TEST(VqCoder, GradientsOfBothHalves) {
  VqCoderOptions o = small_vq_coder();
  o.features = 4, o.height = 4, o.attention = {2}, o.groups = 2, o.channels = 1, o.latent = 2;
  VqEncoder encoder(o, Stream(1));
  VqDecoder decoder(o, Stream(2));
  encoder->to(at::kDouble), decoder->to(at::kDouble);
  const at::Tensor x = randn({1, 1, 4, 4}, 3), seed = randn({1, 1, 4, 4}, 4);
  const auto loss = [&] { return (decoder(encoder(x)) * seed).sum(); };
  std::vector<at::Tensor> inputs = {x};
  for (const char* name : {"down.0.block.0.conv1.weight", "down.0.downsample.conv.bias", "down.1.attn.0.q.weight",
                           "mid.attn_1.proj_out.weight", "norm_out.weight", "down.1.block.0.nin_shortcut.weight"}) {
    inputs.push_back(encoder->named_parameters()[name]);
  }
  for (const char* name : {"up.1.upsample.conv.bias", "up.0.block.1.norm2.bias", "conv_out.weight"}) {
    inputs.push_back(decoder->named_parameters()[name]);
  }
  EXPECT_LT(gradient_error(loss, inputs), 1e-6);
}

TEST(VqCoder, RecomputedLevelsHaveTheSameBits) {
  VqEncoder encoder(small_vq_coder(), Stream(1));
  const at::Tensor x = randn({2, 3, 8, 8}, 3).to(at::kFloat);
  const auto gradients = [&](bool again) {
    const RecomputeScope scope(again);
    return torch::autograd::grad({encoder(x).square().sum()}, encoder->parameters());
  };
  const auto kept = gradients(false), recomputed = gradients(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i].equal(recomputed[i])) << i;
}

TEST(VqCoder, SaysWhatIsWrong) {
  VqCoderOptions o = small_vq_coder();
  o.multipliers = {};
  expect_error([&] { VqEncoder(o, Stream(1)); }, {"multipliers"});
  o = small_vq_coder(), o.features = 0;
  expect_error([&] { VqDecoder(o, Stream(1)); }, {"features", "0"});
}

TEST(PatchDiscriminator, SizesAndGradients) {
  PatchDiscriminatorOptions o{.channels = 1, .features = 2, .layers = 1};
  EXPECT_EQ(PatchDiscriminatorOptions{.layers = 3}.map_size(64), 6);
  EXPECT_EQ(PatchDiscriminatorOptions{.layers = 2}.map_size(64), 14);
  EXPECT_LE(PatchDiscriminatorOptions{.layers = 3}.map_size(16), 0);
  PatchDiscriminator d(o, Stream(1));
  d->to(at::kDouble);
  const at::Tensor x = randn({3, 1, 9, 8}, 2), seed = randn({3, 1, 2, 2}, 3);
  EXPECT_EQ(d(x).sizes(), seed.sizes());
  std::vector<at::Tensor> inputs = d->parameters();
  inputs.push_back(x.requires_grad_(true));
  const auto loss = [&] { return (d->forward(x) * seed).sum(); };
  const auto found = torch::autograd::grad({loss()}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {  // small steps: the activation has a corner
    const at::Tensor numeric =
        convssm::testing::finite_difference([&] { return loss().item<double>(); }, inputs[i].detach(), 1e-6);
    EXPECT_LT(distance(found[i], numeric), 1e-6 * std::max(1.0, convssm::testing::max_abs(numeric))) << i;
  }
}

}  // namespace
}  // namespace convssm::nn
