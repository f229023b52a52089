// Encoder, decoder and their blocks against their definitions in plain tensor operations; gradients, plans, options.
#include "convssm/nn/frame_coder.h"

#include <nlohmann/json.hpp>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/recompute.h"
#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

const CoderOptions kSmall{.depths = {4, 6, 8}, .blocks = 2, .groups = 2};

// ResBlock `at` ("" or "blocks.3.") of a module.
at::Tensor res_block(const Parameters& p, const std::string& at, int64_t groups, const at::Tensor& x) {
  const auto half = [&](const std::string& i, const at::Tensor& in) {
    const at::Tensor v = group_norm(in, groups, p(at + "norm" + i + ".weight"), p(at + "norm" + i + ".bias"));
    return conv(activated(v, ops::Activation::elu), p(at + "conv" + i + ".weight"), p(at + "conv" + i + ".bias"));
  };
  const at::Tensor shortcut = p(at + "shortcut.weight");
  return (shortcut.defined() ? conv(x, shortcut, {}) : x) + 0.1 * half("2", half("1", x));
}

at::Tensor encoded(const Parameters& p, const at::Tensor& x) {
  at::Tensor h = conv(x, p("first.weight"), p("first.bias"));
  const auto block = [&](int i) { h = res_block(p, fmt::format("blocks.{}.", i), 2, h); };
  block(0);
  for (int level = 1; level < 3; ++level) {
    h = at::avg_pool2d(h, 2, 2);
    block(2 * level - 1);
    block(2 * level);
  }
  return h;
}

at::Tensor decoded(const Parameters& p, const at::Tensor& x) {
  at::Tensor h = conv(x, p("first.weight"), p("first.bias"));
  for (int level = 0; level < 3; ++level) {
    if (level > 0) h = h.repeat_interleave(2, 2).repeat_interleave(2, 3);
    for (int i = 0; i < 2; ++i) h = res_block(p, fmt::format("blocks.{}.", 2 * level + i), 2, h);
  }
  return dense(layer_norm(h, p("norm.weight"), p("norm.bias")), p("last.weight"), p("last.bias"));
}

template <class Module>
Module prepared(Module module, at::ScalarType type = at::kDouble) {
  module->to(type);
  scatter(*module);
  return module;
}

TEST(ResBlock, IsItsDefinition) {
  for (const auto& [in, out] : {std::pair{4, 4}, {4, 6}}) {
    auto block = prepared(ResBlock(frame_block, in, out, 2, Stream(1)));
    const at::Tensor x = randn({2, in, 5, 3}, 1);
    EXPECT_LT(distance(block(x), res_block(Parameters(*block), "", 2, x)), 1e-12);
  }
}

TEST(FrameCoder, EncoderAndDecoderAreTheirDefinitions) {
  auto encoder = prepared(Encoder(3, kSmall, Stream(1)));
  auto decoder = prepared(Decoder(5, 3, kSmall, Stream(2)));
  const at::Tensor x = randn({2, 3, 8, 12}, 1), z = randn({2, 5, 2, 3}, 2);
  EXPECT_EQ(encoder(x).sizes(), at::IntArrayRef({2, 8, 2, 3}));
  EXPECT_EQ(decoder(z).sizes(), at::IntArrayRef({2, 3, 8, 12}));
  EXPECT_LT(distance(encoder(x), encoded(Parameters(*encoder), x)), 1e-11);
  EXPECT_LT(distance(decoder(z), decoded(Parameters(*decoder), z)), 1e-11);
}

TEST(FrameCoder, FramesDoNotMix) {
  torch::NoGradGuard no_grad;
  auto encoder = prepared(Encoder(1, kSmall, Stream(1)), at::kFloat);
  const at::Tensor x = randn({3, 1, 8, 8}, 1).to(at::kFloat), y = encoder(x);
  for (int64_t i = 0; i < 3; ++i) EXPECT_LT(distance(encoder(x.narrow(0, i, 1)), y.narrow(0, i, 1)), 1e-5);
}

TEST(FrameCoder, GradientsAreThoseOfFiniteDifferences) {
  const CoderOptions tiny{.depths = {2, 3}, .blocks = 1, .groups = 1};
  auto encoder = prepared(Encoder(1, tiny, Stream(1)));
  auto decoder = prepared(Decoder(3, 1, tiny, Stream(2)));
  const at::Tensor x = randn({1, 1, 4, 4}, 1), g = randn({1, 1, 4, 4}, 2);
  std::vector<at::Tensor> inputs{x};
  for (const auto& p : encoder->parameters()) inputs.push_back(p);
  for (const auto& p : decoder->parameters()) inputs.push_back(p);
  EXPECT_LT(gradient_error([&] { return (decoder(encoder(x)) * g).sum(); }, inputs), 1e-6);
}

TEST(FrameCoder, RecomputingChangesNoBit) {
  auto encoder = prepared(Encoder(1, kSmall, Stream(1)), at::kFloat);
  const at::Tensor x = randn({2, 1, 8, 8}, 1).to(at::kFloat);
  const auto gradients = [&](bool again) {
    const RecomputeScope scope(again);
    return torch::autograd::grad({encoder(x).square().sum()}, encoder->parameters());
  };
  const auto kept = gradients(false), again = gradients(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i].equal(again[i])) << i;
}

TEST(FrameCoder, PlansAreTheSame) {
  torch::NoGradGuard no_grad;
  for (const int64_t channels : {1, 3}) {
    auto encoder = prepared(Encoder(channels, kSmall, Stream(1)), at::kFloat);
    auto decoder = prepared(Decoder(8, channels, kSmall, Stream(2)), at::kFloat);
    FramePlan plan({.batch = 2});
    const Buffer in = plan.state("in", channels, 8, 12), middle = plan.state("middle", 8, 2, 3),
                 out = plan.state("out", channels, 8, 12);
    const Buffer z = encoder->plan(plan, in);
    plan.copy(z, middle);
    plan.copy(decoder->plan(plan, z), out);
    plan.finish();
    for (uint64_t k = 0; k < 2; ++k) {
      const at::Tensor x = randn({2, channels, 8, 12}, k).to(at::kFloat), latent = encoder(x), y = decoder(latent);
      plan.doors().at("in").copy_(x);
      plan.run();
      EXPECT_LT(distance(plan.doors().at("middle"), latent), 1e-5 * max_abs(latent));
      EXPECT_LT(distance(plan.doors().at("out"), y), 1e-5 * max_abs(y));
    }
  }
}

TEST(FrameCoder, Options) {
  using nlohmann::json;
  CoderOptions o;
  o.read_from("encoder", {{"depths", {8, 16}}, {"blocks", 3}, {"groups", 4}});
  EXPECT_EQ(o.depths, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(o.blocks, 3);
  EXPECT_EQ(o.groups, 4);
  EXPECT_EQ(o.scale(), 2);
  EXPECT_EQ(CoderOptions().scale(), 4);
  const auto read = [](const json& options) { return [=] { CoderOptions().read_from("decoder", options); }; };
  expect_error(read({{"depths", json::array()}}), {"decoder", "depths", "1 to 8", "0"});
  expect_error(read({{"depths", {8, 0}}}), {"depths", "positive", "0"});
  expect_error(read({{"blocks", 0}}), {"blocks", "1 to 1000", "0"});
  expect_error(read({{"groups", -1}}), {"groups", "positive", "-1"});
  expect_error(read({{"depth", {8}}}), {"decoder", "depth"});
}

}  // namespace
}  // namespace convssm::nn::testing
