// The nonlinear blocks: each kind against its formula in plain tensor operations, gradients, plans, bad use.
#include "convssm/nn/activation_block.h"

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/flop_meter.h"
#include "tests/nn/axis_kernels.h"

namespace convssm::nn::testing {
namespace {

constexpr std::array kKinds{BlockKind::resnet, BlockKind::standard, BlockKind::half_glu, BlockKind::diag_resnet,
                            BlockKind::sparse, BlockKind::convnext, BlockKind::s4nd};

bool takes_gates(BlockKind kind) {
  return kind == BlockKind::resnet || kind == BlockKind::standard || kind == BlockKind::sparse;
}

at::Tensor squeeze_excite(const Parameters& p, const at::Tensor& x) {
  const at::Tensor hidden = at::relu(dense(x.mean({2, 3}), p("se.down.weight"), p("se.down.bias")));
  const at::Tensor gate = at::sigmoid(dense(hidden, p("se.up.weight"), p("se.up.bias")));
  return x * gate.unsqueeze(-1).unsqueeze(-1);
}

// Every channel with its own kernel: a convolution whose weights are zero between channels.
at::Tensor depthwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor channels = at::eye(x.size(1), x.options()).view({x.size(1), x.size(1), 1, 1});
  return conv(x, channels * weight, bias);
}

at::Tensor sparse(const BlockOptions& o, const Parameters& p, const at::Tensor& y) {
  at::Tensor h = y;
  for (const std::string i : {"1", "2"}) {
    h = activated(group_norm(h, o.groups, p("norm" + i + ".weight"), p("norm" + i + ".bias")), o.activation);
    h = conv(depthwise(h, p("depthwise" + i + ".weight"), {}), p("conv" + i + ".weight"), p("conv" + i + ".bias"));
  }
  return activated(y + (o.squeeze_excite ? squeeze_excite(p, h) : h), o.activation);
}

at::Tensor convnext(const Parameters& p, const at::Tensor& y) {
  const at::Tensor mixed = depthwise(y, p("depthwise.weight"), p("depthwise.bias"));
  const at::Tensor v = layer_norm(mixed, p("norm.weight"), p("norm.bias"));
  const at::Tensor h = activated(dense(v, p("expand.weight"), p("expand.bias")), ops::Activation::gelu_erf);
  return y + per_channel(p("scale"), y) * dense(h, p("contract.weight"), p("contract.bias"));
}

at::Tensor s4nd(const Parameters& p, const at::Tensor& y) {
  const at::Tensor mixed = separable_convolution(p, y) + per_channel(p("D"), y) * y;
  const at::Tensor h = dense(activated(mixed, ops::Activation::gelu), p("dense.weight"), p("dense.bias"));
  const int64_t C = y.size(1);
  return h.narrow(1, 0, C) * at::sigmoid(h.narrow(1, C, C));
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
    case BlockKind::sparse:
      return sparse(o, p, y);
    case BlockKind::convnext:
      return convnext(p, y);
    case BlockKind::s4nd:
      return s4nd(p, y);
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
    all.back().depthwise_kernel = 3;
    all.back().axis_states = 4;
    if (takes_gates(kind)) all.push_back({.kind = kind, .channels = 8, .groups = 2, .squeeze_excite = true});
  }
  return all;
}

TEST(ActivationBlock, IsItsFormula) {
  torch::NoGradGuard no_grad;
  for (const BlockOptions& o : subjects()) {
    ActivationBlock block = make_activation_block(o, Stream(1));
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
    o.kernel = o.kind == BlockKind::sparse ? 3 : 1;
    o.depthwise_kernel = 3;
    o.axis_states = 4;
    ActivationBlock block = make_activation_block(o, Stream(1));
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
    ActivationBlock block = make_activation_block(o, Stream(1));
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

// By hand, for U channels, a kernel of k x k and n = axis_states / 2.
TEST(ActivationBlock, ParameterCounts) {
  const int64_t U = 24, k = 5, n = 3;
  const auto count = [&](BlockKind kind) {
    const BlockOptions o{.kind = kind, .channels = U, .kernel = k, .groups = 8, .axis_states = 2 * n};
    int64_t total = 0;
    for (const auto& p : make_activation_block(o, Stream(1))->parameters()) total += p.numel();
    return total;
  };
  EXPECT_EQ(count(BlockKind::resnet), 2 * k * k * U * U + 6 * U);
  EXPECT_EQ(count(BlockKind::standard), 2 * U);
  EXPECT_EQ(count(BlockKind::half_glu), U * U + 3 * U);
  EXPECT_EQ(count(BlockKind::diag_resnet), k * k * U * U + 5 * U);
  EXPECT_EQ(count(BlockKind::sparse), 2 * U * U + 2 * k * k * U + 6 * U);
  EXPECT_EQ(count(BlockKind::convnext), 8 * U * U + 58 * U);  // 49 + 1, 2, 4, 1 and g
  EXPECT_EQ(count(BlockKind::s4nd),
            2 * U * U + 2 * U + U + 2 * U * (6 * n + 1));  // Lambda 2n, C 4n and a step per axis
}

// Two operations per product, for one frame; of the scans of s4nd the readout counts, as other scans do not.
TEST(ActivationBlock, Arithmetic) {
  torch::NoGradGuard no_grad;
  const uint64_t U = 6, k = 5, n = 3, pixels = 4 * 7;
  const auto count = [&](BlockKind kind) {
    const BlockOptions o{.kind = kind, .channels = 6, .kernel = 5, .groups = 3, .axis_states = 6};
    ActivationBlock block = make_activation_block(o, Stream(1));
    ops::FlopMeter meter;
    block(at::zeros({1, 6, 4, 7}));
    return meter.count();
  };
  EXPECT_EQ(count(BlockKind::resnet), 2 * pixels * 2 * k * k * U * U);
  EXPECT_EQ(count(BlockKind::standard), 0u);
  EXPECT_EQ(count(BlockKind::half_glu), 2 * pixels * U * U);
  EXPECT_EQ(count(BlockKind::diag_resnet), 2 * pixels * k * k * U * U);
  EXPECT_EQ(count(BlockKind::sparse), 2 * pixels * 2 * (k * k * U + U * U));
  EXPECT_EQ(count(BlockKind::convnext), 2 * pixels * (49 * U + 8 * U * U));
  EXPECT_EQ(count(BlockKind::s4nd), 2 * pixels * (2 * 2 * 2 * n * U + 2 * U * U));
}

// Frames do not mix, whatever is beside them.
TEST(ActivationBlock, ActsFrameByFrame) {
  torch::NoGradGuard no_grad;
  for (const BlockOptions& o : subjects()) {
    ActivationBlock block = make_activation_block(o, Stream(1));
    block->to(at::kDouble);
    const at::Tensor y = randn({3, o.channels, 4, 5}, 1);
    EXPECT_LT(distance(block(y)[1], block(y.narrow(0, 1, 1))[0]), 1e-12) << name(o.kind);
  }
}

// g decides how much of a nonlinearity there is at the start.
TEST(ActivationBlock, ConvnextBeginsAsFarFromTheIdentityAsItsScaleSays) {
  torch::NoGradGuard no_grad;
  const auto change = [](double scale) {
    const BlockOptions o{.kind = BlockKind::convnext, .channels = 64, .layer_scale = scale};
    ActivationBlock block = make_activation_block(o, Stream(1));
    block->to(at::kDouble);
    const at::Tensor y = randn({1, 64, 8, 8}, 1);
    return ((block(y) - y).norm() / y.norm()).item<double>();
  };
  EXPECT_NEAR(change(0.1) / change(1e-6), 1e5, 1e-1);  // g is a float32
  RecordProperty("change", std::to_string(change(0.1)));
  EXPECT_GT(change(0.1), 1e-3);
  EXPECT_LT(change(0.1), 1e-1);
}

// Two scans of random readouts neither drown nor blow up the frames.
TEST(ActivationBlock, S4ndBeginsAtTheScaleOfItsInput) {
  torch::NoGradGuard no_grad;
  for (const int64_t size : {8, 16, 32}) {
    const BlockOptions o{.kind = BlockKind::s4nd, .channels = 64};
    ActivationBlock block = make_activation_block(o, Stream(1));
    const at::Tensor y = block(randn({1, 64, size, size}, 1).to(at::kFloat));
    const double rms = y.square().mean().sqrt().item<double>();
    RecordProperty("rms_" + std::to_string(size), std::to_string(rms));
    EXPECT_GT(rms, 0.1) << size;
    EXPECT_LT(rms, 3) << size;
  }
}

TEST(ActivationBlock, FewerGroupsWhereTheyDoNotDivide) {
  torch::NoGradGuard no_grad;
  ActivationBlock wanted = make_activation_block({.kind = BlockKind::standard, .channels = 6, .groups = 32}, Stream(1));
  ActivationBlock taken = make_activation_block({.kind = BlockKind::standard, .channels = 6, .groups = 6}, Stream(1));
  const at::Tensor y = randn({1, 6, 3, 3}, 1).to(at::kFloat);
  EXPECT_TRUE(wanted(y).equal(taken(y)));
}

TEST(ActivationBlock, NamesRoundTripAndBadUseIsRefused) {
  for (const BlockKind kind : kKinds) EXPECT_EQ(parse_block_kind(name(kind)), kind);
  expect_error([] { parse_block_kind("resnett"); }, {"[activation_block]", "resnet, standard", "s4nd", "resnett"});
  const auto make = [](const BlockOptions& o) { return [=] { make_activation_block(o, Stream(1)); }; };
  expect_error(make({.channels = 0}), {"channels", "0"});
  expect_error(make({.kind = BlockKind::sparse, .channels = 4, .kernel = 4}), {"[Depthwise]", "odd", "4x4"});
  expect_error(make({.kind = BlockKind::convnext, .channels = 4, .depthwise_kernel = 6}),
               {"[Depthwise]", "odd", "6x6"});
  expect_error(make({.kind = BlockKind::convnext, .channels = 4, .layer_scale = NAN}), {"layer_scale", "nan"});
  expect_error(make({.kind = BlockKind::s4nd, .channels = 4, .axis_states = 5}), {"axis_states", "even", "5"});
  for (const BlockKind kind : kKinds) {
    if (takes_gates(kind)) continue;
    expect_error(make({.kind = kind, .channels = 4, .squeeze_excite = true}), {"squeeze_excite", name(kind)});
  }
  ActivationBlock block = make_activation_block({.channels = 4, .groups = 2}, Stream(1));
  expect_error([&] { block(at::ones({4, 3, 3})); }, {"[N,C,H,W]", "[4,3,3]"});
}

}  // namespace
}  // namespace convssm::nn::testing
