// The hybrid: what its attention sees and what not, that only differences of positions count, its bounded state, bad use.
#include "convssm/cores/hybrid.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/nn/rotary.h"
#include "convssm/ops/flop_meter.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::randn;

json hybrid_options(const json& more) {
  json options{{"features", 12}, {"state_size", 8}, {"groups", 4}, {"heads", 2}, {"window", 4}, {"mlp", 16}};
  options.update(more);
  return options;
}

std::shared_ptr<Core> hybrid_made(const json& more) {
  const auto core = make_core("hybrid", hybrid_options(more));
  core->to(at::kDouble);
  core->eval();
  return core;
}

// The change of each frame of the output when one frame of the input changes.
std::vector<double> hybrid_heard(Core& core, const at::Tensor& x, int64_t changed) {
  torch::NoGradGuard no_grad;
  at::Tensor other = x.clone();
  other[changed] += randn(x[0].sizes(), 77);
  const at::Tensor before = core.forward(x).y, after = core.forward(other).y;
  std::vector<double> heard;
  for (int64_t t = 0; t < x.size(0); ++t) heard.push_back(distance(before[t], after[t]));
  return heard;
}

TEST(Hybrid, AttentionAloneSeesExactlyItsWindow) {
  for (const int64_t window : {1, 2, 4}) {
    for (const int64_t patch : {1, 2}) {
      const auto core = hybrid_made({{"layers", 1}, {"attention_every", 1}, {"window", window}, {"patch", patch}});
      const auto heard = hybrid_heard(*core, randn({12, 2, 12, 4, 6}, 1), 3);
      for (int64_t t = 0; t < 12; ++t) {
        const bool within = t >= 3 && t < 3 + window;
        if (within) {
          EXPECT_GT(heard[t], 1e-3) << t << " window " << window;
        } else {
          EXPECT_EQ(heard[t], 0) << t << " window " << window;
        }
      }
    }
  }
}

TEST(Hybrid, TwoLayersOfAttentionSeeTwoWindows) {
  const auto core = hybrid_made({{"layers", 2}, {"attention_every", 1}, {"window", 3}});
  const auto heard = hybrid_heard(*core, randn({12, 1, 12, 2, 3}, 1), 2);
  for (int64_t t = 0; t < 12; ++t) EXPECT_EQ(heard[t] > 0, t >= 2 && t < 2 + 2 * 3 - 1) << t;
}

TEST(Hybrid, StateSpacesRememberWhatAttentionDoesNotSee) {
  const auto core = hybrid_made({{"layers", 2}, {"window", 2}, {"dt_min", 0.01}});
  EXPECT_GT(hybrid_heard(*core, randn({40, 1, 12, 2, 3}, 1), 1)[39], 1e-6);
}

// A token hears of the far corner of its frame at once: convolutions of one layer do not reach so far.
TEST(Hybrid, TokensSeeTheWholeFrame) {
  torch::NoGradGuard no_grad;
  const auto core = hybrid_made({{"layers", 1}, {"attention_every", 1}});
  const at::Tensor x = randn({1, 1, 12, 9, 9}, 1);
  at::Tensor other = x.clone();
  other.select(3, 0).select(3, 0) += randn({1, 1, 12}, 2);
  EXPECT_GT(distance(core->forward(x).y.select(3, 8).select(3, 8), core->forward(other).y.select(3, 8).select(3, 8)),
            1e-6);
}

// Frames that all moved by the same are the same to each other; that frames of different ages are not, and neither are
// rows and columns, shows in exchanging them.
TEST(Hybrid, KnowsAgesAndPlaces) {
  torch::NoGradGuard no_grad;
  const auto core = hybrid_made({{"layers", 1}, {"attention_every", 1}, {"window", 3}});
  const at::Tensor x = randn({3, 1, 12, 3, 4}, 1);
  const at::Tensor y = core->forward(x).y[2];
  EXPECT_GT(distance(core->forward(x.index_select(0, at::tensor({1, 0, 2}))).y[2], y), 1e-3) << "ages";
  const auto mirrored = [&](int64_t axis) { return core->forward(x.flip({axis})).y[2].flip({axis - 1}); };
  EXPECT_GT(distance(mirrored(3), y), 1e-3) << "rows";
  EXPECT_GT(distance(mirrored(4), y), 1e-3) << "columns";
}

// However long it has run: a future from the same last frames is the same, and so is the size of the state.
TEST(Hybrid, IsTheSameHoweverLongItHasRun) {
  torch::NoGradGuard no_grad;
  const auto core = hybrid_made({{"layers", 1}, {"attention_every", 1}, {"window", 4}});
  const at::Tensor last = randn({6, 1, 12, 2, 3}, 1);
  State state;
  for (int64_t k = 0; k < 500; ++k) state = core->step(randn({1, 12, 2, 3}, 1000 + k), state).state;
  EXPECT_EQ(state.get("layers.0.k").sizes(), at::IntArrayRef({1, 2, 3 * 6, 6}));
  const at::Tensor late = core->forward(last, state).y, early = core->forward(last).y;
  EXPECT_LT(distance(late.slice(0, 3), early.slice(0, 3)), 1e-13);
  EXPECT_GT(distance(late.slice(0, 0, 3), early.slice(0, 0, 3)), 1e-3);
  EXPECT_TRUE(core->constant_state());
  EXPECT_FALSE(core->has_plan());
  EXPECT_EQ(core->pair_bytes(), 0);
}

TEST(Hybrid, TakesFramesOfAnySize) {
  torch::NoGradGuard no_grad;
  const auto core = hybrid_made({{"layers", 2}, {"patch", 2}});
  for (const int64_t side : {2, 4, 8}) {
    EXPECT_EQ(core->forward(at::ones({3, 1, 12, side, 2 * side}, at::kDouble)).y.size(4), 2 * side);
  }
}

TEST(Hybrid, AStepCostsTheSameOnceTheWindowIsFull) {
  torch::NoGradGuard no_grad;
  const auto core = make_core("hybrid", hybrid_options({{"layers", 2}, {"window", 4}}));
  std::vector<uint64_t> counts;
  State state;
  for (int64_t k = 0; k < 12; ++k) {
    ops::FlopMeter meter;
    state = core->step(at::ones({1, 12, 4, 4}), state).state;
    counts.push_back(meter.count());
  }
  // By hand: 16 more keys and values for 16 queries, of 12 features each, until there are 4 frames.
  for (size_t k = 1; k < 4; ++k) EXPECT_EQ(counts[k] - counts[k - 1], 2u * 2 * 16 * 16 * 12) << k;
  for (size_t k = 4; k < 12; ++k) EXPECT_EQ(counts[k], counts[3]) << k;
}

TEST(Hybrid, ParameterCount) {
  const auto count = [](const json& more) {
    int64_t sum = 0;
    for (const auto& p : make_core("hybrid", hybrid_options(more))->parameters()) sum += p.numel();
    return sum;
  };
  const int64_t U = 12, N = 8, M = 16, P = N / 2;
  const int64_t space = 3 * P + 2 * 2 * P * U * 9 + 2 * (9 * U * U + U) + 3 * 2 * U;
  const int64_t attention = 4 * (U * U + U) + U * M + M + M * U + U + 6 * U;
  EXPECT_EQ(count({{"layers", 4}}), 2 * space + 2 * attention);
  EXPECT_EQ(count({{"layers", 5}, {"attention_every", 3}}), 4 * space + attention);
  EXPECT_EQ(count({{"patch", 2}}), space + attention + 4 * U * U + U + 4 * U * U + 4 * U);
}

// Products of turned vectors depend on the difference of their positions, in each axis.
TEST(Rotary, ProductsDependOnDifferences) {
  const at::Tensor angles = nn::grid_angles(5, 4, 6, 14, at::kDouble);
  ASSERT_EQ(angles.sizes(), at::IntArrayRef({120, 7}));
  const at::Tensor q = randn({1, 14}, 1), k = randn({1, 14}, 2);
  const auto product = [&](int64_t a, int64_t b) {
    return (nn::rotate(q, angles.slice(0, a, a + 1)) * nn::rotate(k, angles.slice(0, b, b + 1))).sum().item<double>();
  };
  const auto token = [](int64_t t, int64_t i, int64_t j) { return (t * 4 + i) * 6 + j; };
  const double near = product(token(2, 1, 3), token(0, 0, 1));
  EXPECT_NEAR(product(token(4, 3, 5), token(2, 2, 3)), near, 1e-12);
  for (const int64_t other : {token(1, 0, 1), token(0, 1, 1), token(0, 0, 2)}) {
    EXPECT_GT(std::abs(product(token(2, 1, 3), other) - near), 1e-3);
  }
  EXPECT_NEAR(nn::rotate(q, angles.slice(0, 77, 78)).norm().item<double>(), q.norm().item<double>(), 1e-12);
}

TEST(BadUse, HybridOptions) {
  const auto make = [](const json& more) { return [=] { make_core("hybrid", hybrid_options(more)); }; };
  expect_error(make({{"window", 0}}), {"[Hybrid]", "window must be at least 1 frame", "got 0"});
  expect_error(make({{"window", -3}}), {"[Hybrid]", "window", "got -3"});
  expect_error(make({{"attention_every", 0}}), {"[Hybrid]", "attention_every must be 1 to 2", "got 0"});
  expect_error(make({{"layers", 3}, {"attention_every", 4}}), {"attention_every must be 1 to 3", "got 4"});
  expect_error(make({{"heads", 5}}), {"[Hybrid]", "heads must divide the 12 features", "5"});
  expect_error(make({{"heads", 4}}), {"[Hybrid]", "at least 6", "12 / 4", "fewer heads"});
  expect_error(make({{"patch", 0}}), {"[Hybrid]", "patch", "got 0"});
  expect_error(make({{"mlp", -1}}), {"[Hybrid]", "mlp", "-1"});
  expect_error(make({{"windwo", 3}}), {"[Hybrid]", "windwo", "did you mean 'window'"});
  expect_error(make({{"state_size", 0}}), {"state_size", "0"});
  expect_error(make({{"kernel_b", 0}}), {"kernel_b", "got 0"});
}

TEST(BadUse, HybridInputsAndStates) {
  const auto core = make_core("hybrid", hybrid_options({{"patch", 2}}));
  expect_error([&] { core->forward(at::ones({3, 1, 12, 4, 5})); }, {"[Hybrid]", "whole patches of 2x2", "4x5"});
  expect_error([&] { core->forward(at::ones({3, 1, 8, 4, 4})); }, {"[Hybrid]", "[L,B,12,H,W]", "[3,1,8,4,4]"});
  expect_error([&] { core->forward(at::ones({3, 12, 4, 4})); }, {"[L,B,C,H,W]"});
  expect_error([&] { core->forward(at::ones({3, 1, 12, 4, 4}, at::kDouble)); }, {"float32", "float64"});
  const at::Tensor x = at::ones({5, 2, 12, 4, 4});
  const State state = core->forward(x).state;
  expect_error([&] { core->forward(at::ones({1, 2, 12, 8, 4}), state); }, {"layers.1.k", "3 frames", "[2,2,12,6]"});
  expect_error([&] { core->forward(at::ones({1, 3, 12, 4, 4}), state); }, {"layers.0.x", "[3,8,4,4]", "[2,8,4,4]"});
  const auto shorter = make_core("hybrid", hybrid_options({{"patch", 2}, {"window", 2}}));
  expect_error([&] { shorter->forward(x, state); }, {"layers.1.k", "at most 1 frames", "[2,2,12,6]"});
  State part = state;
  part.set("layers.1.v", at::ones({2, 2, 4, 6}));
  expect_error([&] { core->forward(x, part); }, {"layers.1.v", "[2,2,12,6]", "[2,2,4,6]"});
  part.set("more", at::ones({1}));
  expect_error([&] { core->forward(x, part); }, {"[Hybrid]", "3 in all, got 4"});
  const auto lru = make_core("hybrid", hybrid_options({{"init", "lru"}}));
  expect_error([&] { lru->forward(x, {}, {at::ones({5}), {}, 1}); }, {"[Hybrid] dt is not supported", "init hippo"});
  torch::NoGradGuard no_grad;
  core->named_parameters()["layers.1.block.qkv.weight"].view({-1})[0].fill_(NAN);
  expect_error([&] { core->forward(x); }, {"[Hybrid]", "layers.1.block.qkv.weight", "NaN"});
}

}  // namespace
}  // namespace convssm::cores
