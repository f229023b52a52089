// Every core that has a plan: its steps against those of the core, state by state, for every option that has code.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/nn/frame_plan.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::max_abs;
using testing::randn;

// Norms with weight one and convolutions without bias would hide mistakes.
void scatter(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (auto& item : module.named_parameters()) {
    const bool plain = item.key().ends_with("weight") || item.key().ends_with("bias") || item.key().ends_with(".x0") ||
                       item.key().find(".dynamics.") != std::string::npos;
    if (plain) item.value().add_(randn(item.value().sizes(), ++seed).to(at::kFloat), 0.2);
  }
}

struct Shape {
  int64_t B, H, W;
};

// Frames from a state that is not zero: the plan begins where the core is after one frame.
void expect_same(const std::string& name, const json& options, const Shape& s) {
  SCOPED_TRACE(name + " " + options.dump());
  torch::NoGradGuard no_grad;
  const auto core = make_core(name, options);
  core->eval();
  scatter(*core);
  const int64_t C = options["features"];
  const auto frame = [&](uint64_t k) { return randn({s.B, C, s.H, s.W}, k).to(at::kFloat); };
  ASSERT_TRUE(core->has_plan());
  nn::FramePlan plan({.batch = s.B});
  const nn::Buffer in = plan.state("in", C, s.H, s.W), out = plan.state("out", C, s.H, s.W);
  const nn::Buffer y = core->plan(plan, in);
  plan.mark_states();
  plan.copy(y, out);
  plan.finish();

  State state = core->step(frame(0), {}).state;
  for (const auto& [key, value] : state.items()) plan.doors().at(key).copy_(value);
  for (uint64_t k = 1; k < 5; ++k) {
    CoreOutput expected = core->step(frame(k), state);
    plan.doors().at("in").copy_(frame(k));
    plan.run();
    EXPECT_LT(distance(plan.doors().at("out"), expected.y), 1e-5 * std::max(1.0, max_abs(expected.y))) << "frame " << k;
    for (const auto& [key, value] : expected.state.items()) {
      EXPECT_LT(distance(plan.doors().at(key), value), 1e-5 * std::max(1.0, max_abs(value))) << key << ", frame " << k;
    }
    state = std::move(expected.state);
  }
}

const json kSmall = {{"features", 12}, {"state_size", 16}, {"layers", 2}, {"groups", 4}, {"dt_max", 1.0}};

json with(json options, const json& changes) {
  options.update(changes);
  return options;
}

TEST(CorePlan, ConvS5OfEveryKind) {
  for (const char* kind : {"resnet", "standard", "half_glu", "diag_resnet", "sparse", "convnext", "s4nd"}) {
    expect_same("convs5", with(kSmall, {{"activation_block", kind}}), {2, 5, 7});
    expect_same("convs5", with(kSmall, {{"activation_block", kind}, {"prenorm", true}, {"feedthrough", true}}),
                {1, 4, 4});
  }
  for (const char* kind : {"resnet", "standard", "sparse"}) {
    expect_same("convs5", with(kSmall, {{"activation_block", kind}, {"squeeze_excite", true}}), {3, 5, 7});
  }
  expect_same("convs5", with(kSmall, {{"activation_block", "sparse"}, {"kernel_d", 5}}), {1, 6, 5});
  expect_same("convs5", with(kSmall, {{"activation_block", "convnext"}, {"depthwise_kernel", 3}, {"layer_scale", 1}}),
              {1, 6, 5});
  expect_same("convs5", with(kSmall, {{"activation_block", "s4nd"}, {"axis_states", 64}}), {1, 1, 5});
  for (const char* activation : {"relu", "swish", "elu"}) {
    expect_same("convs5", with(kSmall, {{"activation", activation}}), {1, 6, 6});
  }
}

TEST(CorePlan, ConvS5States) {
  expect_same("convs5", with(kSmall, {{"learned_state", true}}), {2, 4, 6});
  expect_same("convs5", with(kSmall, {{"init", "lru"}}), {2, 4, 6});
  expect_same("convs5", with(kSmall, {{"init", "lru"}, {"learned_state", true}, {"prenorm", true}}), {1, 4, 6});
}

TEST(CorePlan, ConvS5Dynamics) {
  for (const char* dynamics : {"selective", "gated", "liquid"}) {
    expect_same("convs5", with(kSmall, {{"dynamics", dynamics}}), {2, 4, 6});
    expect_same("convs5", with(kSmall, {{"dynamics", dynamics}, {"learned_state", true}, {"state_size", 10}}),
                {1, 5, 3});
  }
  expect_same("convs5", with(kSmall, {{"dynamics", "gated"}, {"init", "lru"}, {"kernel_b", 1}}), {1, 4, 6});
  expect_same("convs5", with(kSmall, {{"dynamics", "liquid"}, {"init", "lru"}}), {1, 4, 6});
  for (const char* act : {"identity", "swish", "gelu"}) {
    expect_same("convs5", with(kSmall, {{"output_gate", act}}), {2, 4, 6});
    expect_same("convs5", with(kSmall, {{"output_gate", act}, {"prenorm", true}, {"kernel_d", 1}}), {1, 4, 6});
  }
}

// Without a state before it, a plan begins where the core does, and again when it is told to.
TEST(CorePlan, ALearnedStateIsWhereAPlanBegins) {
  torch::NoGradGuard no_grad;
  const auto core = make_core("convs5", with(kSmall, {{"learned_state", true}}));
  core->eval();
  scatter(*core);
  nn::FramePlan plan({.batch = 2});
  const nn::Buffer in = plan.state("in", 12, 4, 6), out = plan.state("out", 12, 4, 6);
  plan.copy(core->plan(plan, in), out);
  plan.finish();
  const at::Tensor frame = randn({2, 12, 4, 6}, 1).to(at::kFloat), expected = core->step(frame, {}).y;
  for (int time = 0; time < 2; ++time) {
    plan.doors().at("in").copy_(frame);
    plan.run();
    EXPECT_LT(distance(plan.doors().at("out"), expected), 1e-5) << time;
    plan.run();
    EXPECT_GT(distance(plan.doors().at("out"), expected), 1e-3);
    for (const std::string& name : plan.states()) plan.begin(name);
    EXPECT_EQ(max_abs(plan.doors().at("in")), 0);
  }
}

TEST(CorePlan, ConvS5Wrappers) {
  expect_same("convs5", with(kSmall, {{"use_norm", false}}), {1, 4, 6});
  expect_same("convs5", with(kSmall, {{"use_norm", false}, {"skip", false}}), {1, 4, 6});
  expect_same("convs5", with(kSmall, {{"skip", false}}), {2, 4, 6});
  expect_same("convs5", with(kSmall, {{"skip", false}, {"prenorm", true}}), {2, 4, 6});
  expect_same("convs5", with(kSmall, {{"layers", 12}, {"skip_connections", true}}), {1, 3, 3});
  expect_same("convs5", with(kSmall, {{"kernel_b", 1}, {"kernel_c", 5}, {"kernel_d", 2}}), {1, 6, 5});
  expect_same("convs5", with(kSmall, {{"init", "gaussian"}, {"clip_eigs", true}, {"features", 7}, {"groups", 7}}),
              {1, 5, 5});
  expect_same("convs5", {{"features", 64}, {"state_size", 64}, {"layers", 1}}, {1, 16, 16});
}

TEST(CorePlan, RecurrentBaselines) {
  for (const char* name : {"convrnn", "convlstm", "convgru"}) {
    const json small = {{"features", 12}, {"layers", 2}};
    expect_same(name, small, {2, 5, 7});
    expect_same(name, with(small, {{"prenorm", true}, {"kernel", 5}}), {1, 4, 4});
    expect_same(name, with(small, {{"use_norm", false}, {"skip", false}}), {1, 4, 4});
  }
}

TEST(CorePlan, CoresWithoutOneSaySo) {
  const auto core = make_core("s5", {{"features", 8}, {"state_size", 8}});
  EXPECT_FALSE(core->has_plan());
  nn::FramePlan plan({.batch = 1});
  expect_error([&] { core->plan(plan, {}); }, {"step()"});
}

TEST(CorePlan, MoreLayersTakeNoMoreMemoryBetweenTheStates) {
  torch::NoGradGuard no_grad;
  const auto bytes = [](int64_t layers) {
    const auto core = make_core("convs5", with(kSmall, {{"layers", layers}}));
    nn::FramePlan plan({.batch = 1});
    core->plan(plan, plan.state("in", 12, 8, 8));
    const auto before = plan.bytes();
    plan.finish();
    return plan.bytes() - before;
  };
  EXPECT_EQ(bytes(2), bytes(6));  // the states grow, and they are doors
}

}  // namespace
}  // namespace convssm::cores
