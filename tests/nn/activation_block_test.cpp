// The nonlinear blocks: each kind against its formula in plain tensor operations, gradients, plans, bad use.
#include "convssm/nn/activation_block.h"

#include "convssm/nn/frame_plan.h"
#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

constexpr std::array kKinds{BlockKind::resnet, BlockKind::standard, BlockKind::half_glu, BlockKind::diag_resnet};

bool takes_gates(BlockKind kind) { return kind == BlockKind::resnet || kind == BlockKind::standard; }

at::Tensor squeeze_excite(const Parameters& p, const at::Tensor& x) {
  const at::Tensor hidden = at::relu(dense(x.mean({2, 3}), p("se.down.weight"), p("se.down.bias")));
  const at::Tensor gate = at::sigmoid(dense(hidden, p("se.up.weight"), p("se.up.bias")));
  return x * gate.unsqueeze(-1).unsqueeze(-1);
}

// The formulas at the top of nn/activation_block.h.
at::Tensor formula(const BlockOptions& o, const Parameters& p, const at::Tensor& y) {
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    return activated(group_norm(x, o.groups, p(name + ".weight"), p(name + ".bias")), o.activation);
  };
  const auto convolved = [&](const std::string& name, const at::Tensor& x) {
    return conv(x, p(name + ".weight"), p(name + ".bias"));
  };
  const auto gated = [&](const at::Tensor& x) { return o.squeeze_excite ? squeeze_excite(p, x) : x; };
  switch (o.kind) {
    case BlockKind::standard:
      return gated(norm("norm", y));
    case BlockKind::half_glu: {
      const at::Tensor v = activated(layer_norm(y, p("norm.weight"), p("norm.bias")), ops::Activation::gelu);
      return v * at::sigmoid(dense(v, p("dense.weight"), p("dense.bias")));
    }
    case BlockKind::diag_resnet:
      return activated(y + norm("norm2", convolved("conv1", norm("norm1", y))), o.activation);
    case BlockKind::resnet:
      break;
  }
  return activated(y + gated(convolved("conv2", norm("norm2", convolved("conv1", norm("norm1", y))))), o.activation);
}

std::vector<BlockOptions> subjects() {
  std::vector<BlockOptions> all;
  for (const BlockKind kind : kKinds) {
    all.push_back({.kind = kind, .channels = 6, .kernel = 3, .groups = 3});
    all.push_back({.kind = kind, .channels = 4, .kernel = 5, .groups = 4, .activation = ops::Activation::swish});
    if (takes_gates(kind)) all.push_back({.kind = kind, .channels = 8, .groups = 2, .squeeze_excite = true});
  }
  return all;
}

TEST(ActivationBlock, IsItsFormula) {
  for (const BlockOptions& o : subjects()) {
    ActivationBlock block(o, Stream(1));
    block->to(at::kDouble);
    scatter(*block);
    const at::Tensor y = randn({2, o.channels, 4, 5}, 1);
    EXPECT_LT(distance(block(y), formula(o, Parameters(*block), y)), 1e-12) << name(o.kind);
  }
}

TEST(ActivationBlock, GradientsAreThoseOfFiniteDifferences) {
  for (BlockOptions o : subjects()) {
    o.channels = 4;
    o.groups = 2;
    o.kernel = 1;
    ActivationBlock block(o, Stream(1));
    block->to(at::kDouble);
    scatter(*block);
    const at::Tensor y = randn({1, 4, 2, 2}, 1), g = randn({1, 4, 2, 2}, 2);
    std::vector<at::Tensor> inputs = block->parameters();
    inputs.push_back(y);
    EXPECT_LT(gradient_error([&] { return (block(y) * g).sum(); }, inputs), 1e-6) << name(o.kind);
  }
}

TEST(ActivationBlock, ItsPlanIsTheSame) {
  torch::NoGradGuard no_grad;
  for (const BlockOptions& o : subjects()) {
    ActivationBlock block(o, Stream(1));
    scatter(*block);
    FramePlan plan({.batch = 2});
    const Buffer in = plan.state("in", o.channels, 5, 7), out = plan.state("out", o.channels, 5, 7);
    plan.copy(block->plan(plan, in), out);
    plan.finish();
    for (uint64_t k = 0; k < 2; ++k) {
      const at::Tensor y = randn({2, o.channels, 5, 7}, k).to(at::kFloat);
      plan.doors().at("in").copy_(y);
      plan.run();
      EXPECT_LT(distance(plan.doors().at("out"), block(y)), 1e-5) << name(o.kind);
    }
  }
}

TEST(ActivationBlock, FewerGroupsWhereTheyDoNotDivide) {
  torch::NoGradGuard no_grad;
  ActivationBlock wanted(BlockOptions{.kind = BlockKind::standard, .channels = 6, .groups = 32}, Stream(1));
  ActivationBlock taken(BlockOptions{.kind = BlockKind::standard, .channels = 6, .groups = 6}, Stream(1));
  const at::Tensor y = randn({1, 6, 3, 3}, 1).to(at::kFloat);
  EXPECT_TRUE(wanted(y).equal(taken(y)));
}

TEST(ActivationBlock, NamesRoundTripAndBadUseIsRefused) {
  for (const BlockKind kind : kKinds) EXPECT_EQ(parse_block_kind(name(kind)), kind);
  expect_error([] { parse_block_kind("resnett"); }, {"resnet, standard", "resnett"});
  expect_error([] { ActivationBlock(BlockOptions{.channels = 0}, Stream(1)); }, {"channels", "0"});
  const BlockOptions gated{.kind = BlockKind::half_glu, .channels = 4, .squeeze_excite = true};
  expect_error([&] { ActivationBlock(gated, Stream(1)); }, {"squeeze_excite", "half_glu"});
  ActivationBlock block(BlockOptions{.channels = 4, .groups = 2}, Stream(1));
  expect_error([&] { block(at::ones({4, 3, 3})); }, {"[N,C,H,W]", "[4,3,3]"});
}

}  // namespace
}  // namespace convssm::nn::testing
