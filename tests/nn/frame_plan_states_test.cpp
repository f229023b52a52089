// States of a plan and its memory: recurrences against their formulas in float64, observed ranges, reuse, bad use.
#include "convssm/base/poison.h"
#include "convssm/nn/frame_plan.h"
#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

constexpr int64_t B = 2, H = 5, W = 7, P = 3;

at::Tensor floats(at::IntArrayRef shape, uint64_t seed) { return randn(shape, seed).to(at::kFloat); }
at::Tensor exact(const at::Tensor& x) { return x.to(at::kDouble); }

TEST(FramePlan, ScanStep) {
  FramePlan plan({.batch = B});
  const at::Tensor a = at::complex(randn({P}, 1), randn({P}, 2)) / 2;
  const Buffer state = plan.state("x", 2 * P, H, W), in = plan.state("b", 2 * P, H, W);
  plan.scan_step(state, a, in);
  plan.finish();
  at::Tensor x = at::complex(randn({B, P, H, W}, 3), randn({B, P, H, W}, 4));
  const auto halves = [](const at::Tensor& z) { return at::cat({at::real(z), at::imag(z)}, 1); };
  plan.doors().at("x").copy_(halves(x));
  for (uint64_t k = 0; k < 3; ++k) {
    const at::Tensor b = at::complex(randn({B, P, H, W}, 5 + k), randn({B, P, H, W}, 15 + k));
    plan.doors().at("b").copy_(halves(b));
    plan.run();
    x = a.view({1, P, 1, 1}) * x + b;
    EXPECT_LT(distance(plan.doors().at("x"), halves(x)), 1e-5) << k;
  }
  FramePlan other({.batch = 1});
  expect_error([&] { other.scan_step(other.state("x", 5, 1, 1), a, other.state("b", 5, 1, 1)); }, {"complex", "[3]"});
}

TEST(FramePlan, LstmStep) {
  FramePlan plan({.batch = B});
  const Buffer u = plan.state("u", 4 * P, H, W), v = plan.state("v", 4 * P, H, W), c = plan.state("c", P, H, W),
               h = plan.state("h", P, H, W);
  plan.lstm_step(plan.activate(u, ops::Activation::identity), plan.activate(v, ops::Activation::identity), c, h);
  plan.finish();
  const at::Tensor from_u = floats({B, 4 * P, H, W}, 1), from_h = floats({B, 4 * P, H, W}, 2);
  at::Tensor cell = floats({B, P, H, W}, 3);
  plan.doors().at("u").copy_(from_u);
  plan.doors().at("v").copy_(from_h);
  plan.doors().at("c").copy_(cell);
  plan.run();
  const auto gates = exact(from_u + from_h).chunk(4, 1);
  cell = at::sigmoid(gates[1]) * exact(cell) + at::sigmoid(gates[0]) * at::tanh(gates[3]);
  EXPECT_LT(distance(plan.doors().at("c"), cell), 1e-5);
  EXPECT_LT(distance(plan.doors().at("h"), at::sigmoid(gates[2]) * at::tanh(cell)), 1e-5);
}

TEST(FramePlan, GruSteps) {
  FramePlan plan({.batch = B});
  const Buffer u = plan.state("u", 3 * P, H, W), zr = plan.state("zr", 2 * P, H, W), h = plan.state("h", P, H, W);
  const at::Tensor w = floats({P, P}, 9);
  plan.gru_update(u, zr, plan.conv(plan.gru_reset(u, zr, h), w, {}), h);
  plan.finish();
  const at::Tensor before = floats({B, P, H, W}, 3);
  plan.doors().at("u").copy_(floats({B, 3 * P, H, W}, 1));
  plan.doors().at("zr").copy_(floats({B, 2 * P, H, W}, 2));
  plan.doors().at("h").copy_(before);
  plan.run();
  const auto from_u = exact(plan.doors().at("u")).chunk(3, 1), from_h = exact(plan.doors().at("zr")).chunk(2, 1);
  const at::Tensor z = at::sigmoid(from_u[0] + from_h[0]), r = at::sigmoid(from_u[1] + from_h[1]);
  const at::Tensor n = at::tanh(from_u[2] + conv(r * exact(before), exact(w).view({P, P, 1, 1}), {}));
  EXPECT_LT(distance(plan.doors().at("h"), (1 - z) * exact(before) + z * n), 1e-5);
}

// Steps after mark_states() are not needed for the next frame.
TEST(FramePlan, RunStatesStopsWhereTheStatesAreComplete) {
  FramePlan plan({.batch = 1});
  const Buffer x = plan.state("x", P, H, W), y = plan.state("y", P, H, W), z = plan.state("z", P, H, W);
  plan.copy(x, y);
  plan.mark_states();
  plan.copy(y, z);
  plan.finish();
  plan.doors().at("x").fill_(1);
  plan.run_states();
  EXPECT_EQ(max_abs(plan.doors().at("y") - 1), 0);
  EXPECT_EQ(max_abs(plan.doors().at("z")), 0);
  plan.run();
  EXPECT_EQ(max_abs(plan.doors().at("z") - 1), 0);
}

// The ranges that one plan has seen let another one convolve in bytes.
TEST(FramePlan, ObservedRangesGiveAPlanInBytes) {
  for (const int64_t C : {16, 11}) {
    const at::Tensor w = floats({C, C, 3, 3}, 1) / 10, bias = floats({C}, 2), x = floats({B, C, H, W}, 3);
    const auto build = [&](FramePlan& plan) {
      const Buffer out = plan.state("out", C, H, W);
      plan.copy(plan.conv(plan.activate(plan.state("in", C, H, W), ops::Activation::identity), w, bias), out);
      plan.finish();
      plan.doors().at("in").copy_(x);
      plan.run();
      return plan.doors().at("out").clone();
    };
    FramePlan observing({.batch = B, .observe = true});
    const at::Tensor expected = build(observing);
    ASSERT_EQ(observing.ranges().size(), 1u);
    for (int64_t c = 0; c < C; ++c) {
      EXPECT_EQ(observing.ranges()[0].low[c], x.select(1, c).min().item<float>());
      EXPECT_EQ(observing.ranges()[0].high[c], x.select(1, c).max().item<float>());
    }
    FramePlan in_bytes({.batch = B, .ranges = observing.ranges()});
    const double error = distance(build(in_bytes), expected) / max_abs(expected);
    EXPECT_LT(error, 0.05) << C;
    EXPECT_GT(error, 1e-5) << C;
  }
}

// A chain of any length takes the memory of a few buffers, and what is used later is not given away.
TEST(FramePlan, BuffersAreReusedWhenTheirLastStepIsDone) {
  const auto chain = [](int64_t steps) {
    FramePlan plan({.batch = 1});
    const Buffer in = plan.state("in", P, H, W), out = plan.state("out", P, H, W);
    const Buffer early = plan.activate(in, ops::Activation::identity);
    Buffer x = early;
    for (int64_t i = 0; i < steps; ++i) x = plan.add(x, in);
    plan.copy(plan.add(x, early), out);
    const size_t doors = plan.bytes();
    plan.finish();
    plan.doors().at("in").fill_(1);
    plan.run();
    EXPECT_EQ(max_abs(plan.doors().at("out") - static_cast<double>(steps + 2)), 0);
    return plan.bytes() - doors;
  };
  if (poisons_memory) {
    EXPECT_LT(chain(3), chain(20));  // under AddressSanitizer each has its own
  } else {
    EXPECT_EQ(chain(3), chain(20));
  }
}

TEST(FramePlan, BadUse) {
  FramePlan plan({.batch = 1});
  const Buffer x = plan.state("x", 4, 3, 2);
  expect_error([] { FramePlan({.batch = 0}); }, {"batch", "0"});
  expect_error([&] { plan.run(); }, {"finish()"});
  expect_error([&] { plan.state("x", 4, 2, 2); }, {"two doors", "x"});
  expect_error([&] { plan.conv(x, at::zeros({4, 3, 1, 1}), {}); }, {"[O,4,k,k]", "[4,3,1,1]"});
  expect_error([&] { plan.group_norm(x, 3, at::ones({4}), at::ones({4}), ops::Activation::relu); }, {"3", "4"});
  expect_error([&] { plan.pool2(x); }, {"even size", "3 x 2"});
  expect_error([&] { plan.to_frame(x, at::zeros({1, 4, 4, 2})); }, {"4 x 2", "3 x 2"});
  plan.finish();
  expect_error([&] { plan.activate(x, ops::Activation::relu); }, {"finished"});
  FramePlan ranged({.batch = 1, .ranges = {{{0}, {1}}}});
  expect_error([&] { ranged.finish(); }, {"ranges of 0", "1", "another model"});
}

TEST(FramePlan, ScopesNameTheStates) {
  FramePlan plan({.batch = 1});
  plan.set_scope("layers.0.");
  plan.state("x", 1, 1, 1);
  plan.set_scope("");
  plan.state("y", 1, 1, 1);
  EXPECT_EQ(plan.states(), (std::vector<std::string>{"layers.0.x", "y"}));
  EXPECT_EQ(plan.doors().size(), 2u);
}

}  // namespace
}  // namespace convssm::nn::testing
