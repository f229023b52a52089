// Cores behind the adaptor for frames: against libtorch's convolutions, laws, sizes, parameter counts of the paper.
#include "convssm/cores/frame_core.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::randn;

// Small options for every core of the registry.
json small(const CoreInfo& info) {
  json options{{"features", 8}, {"layers", 2}};
  if (info.many_tokens) options.update({{"heads", 2}, {"mlp", 8}, {"patch", 2}});
  if (info.on_tokens) options["out_features"] = 5;
  if (std::string(info.name).ends_with("s5")) options["state_size"] = 8;
  if (info.name == "convs5") options["groups"] = 4;
  if (info.name == "hybrid") options.update({{"state_size", 8}, {"heads", 1}, {"window", 3}});
  return options;
}

TEST(FrameCore, EveryCoreTakesFramesAndKeepsTheLaw) {
  torch::NoGradGuard no_grad;
  for (const CoreInfo& info : all_cores()) {
    const auto core = make_frame_core(info.name, small(info), {3, 4, 6}, 1);
    EXPECT_EQ(core->in_channels(), 3);
    EXPECT_EQ(core->out_channels(), info.on_tokens ? 5 : 8) << info.name;
    const at::Tensor x = randn({7, 2, 3, 4, 6}, 1).to(at::kFloat);
    const CoreOutput whole = core->forward(x);
    EXPECT_EQ(whole.y.sizes(), at::IntArrayRef({7, 2, core->out_channels(), 4, 6})) << info.name;
    const CoreOutput first = core->forward(x.slice(0, 0, 4)), second = core->forward(x.slice(0, 4), first.state);
    EXPECT_LT(distance(at::cat({first.y, second.y}), whole.y), 1e-5) << info.name;
    EXPECT_LT(distance(core->step(x[4], first.state).y, whole.y[4]), 1e-5) << info.name;
  }
}

TEST(FrameCore, StatesAndPropertiesAreTheCores) {
  const json options{{"features", 8}, {"layers", 2}, {"heads", 2}, {"patch", 2}};
  const auto core = make_frame_core("transformer", options, {3, 4, 6}, 1);
  EXPECT_FALSE(core->constant_state());
  EXPECT_EQ(core->pair_bytes(), 2 * 2 * 6 * 6 * 4);
  const auto names = core->forward(at::ones({1, 1, 3, 4, 6})).state.items();
  ASSERT_EQ(names.size(), 5u);
  EXPECT_EQ(names[0].first, "layers.0.k");
  EXPECT_EQ(core->out_channels(), 256);
  const json window{{"features", 8}, {"state_size", 8}, {"heads", 1}, {"window", 20}};
  EXPECT_EQ(make_frame_core("hybrid", window, {3, 4, 6}, 1)->telling_frames(), 40);
}

// Compression and expansion against libtorch, around a core that is bypassed by comparing what enters and leaves it.
TEST(FrameCore, PatchesAreStridedConvolutions) {
  torch::NoGradGuard no_grad;
  const json options{{"features", 8}, {"heads", 2}, {"patch", {2, 3}}, {"out_features", 5}};
  const auto core = make_frame_core("transformer", options, {3, 4, 6}, 1);
  core->to(at::kDouble);
  json inner = {{"features", 8}, {"heads", 2}, {"tokens", {2, 2}}, {"seed", 1}};
  const auto bare = make_core("transformer", inner);
  bare->to(at::kDouble);
  const auto p = core->named_parameters();
  const at::Tensor x = randn({4, 2, 3, 4, 6}, 1);
  const at::Tensor tokens = at::conv2d(x.flatten(0, 1), p["z_proj"], {}, {2, 3}).unflatten(0, {4, 2});
  const at::Tensor y = bare->forward(tokens).y.flatten(0, 1);
  const at::Tensor expected = at::conv_transpose2d(y, p["z_unproj"], {}, {2, 3}).unflatten(0, {4, 2});
  EXPECT_LT(distance(core->forward(x).y, expected), 1e-12);
}

TEST(FrameCore, GradientsReachTheAdaptor) {
  for (const char* name : {"transformer", "s5", "convlstm"}) {
    const CoreInfo& info = find_core(name);
    const auto core = make_frame_core(name, small(info), {2, 2, 2}, 1);
    core->to(at::kDouble);
    const at::Tensor x = randn({3, 1, 2, 2, 2}, 1), w = randn({3, 1, core->out_channels(), 2, 2}, 2);
    std::vector<at::Tensor> inputs{x};
    for (const auto& item : core->named_parameters()) {
      if (!item.key().starts_with("core.")) inputs.push_back(item.value());
    }
    EXPECT_EQ(inputs.size(), 3u);
    EXPECT_LT(testing::gradient_error([&] { return (core->forward(x).y * w).sum(); }, inputs), 1e-6) << name;
  }
}

TEST(FrameCore, InitialValuesFollowTheFanIn) {
  const json options{{"features", 64}, {"state_size", 8}, {"out_features", 32}};
  const auto p = make_frame_core("s5", options, {16, 4, 4}, 1)->named_parameters();
  EXPECT_NEAR(p["z_proj"].std().item<double>(), std::sqrt(1.0 / (16 * 16)), 2e-3);
  EXPECT_NEAR(p["z_unproj"].std().item<double>(), std::sqrt(1.0 / (64 * 16)), 1e-3);
  const auto other = make_frame_core("s5", options, {16, 4, 4}, 2)->named_parameters();
  EXPECT_GT(distance(p["z_proj"], other["z_proj"]), 0.01);
  EXPECT_GT(distance(p["core.layers.0.ssm.B"], other["core.layers.0.ssm.B"]), 0.01);
}

TEST(FrameCore, BadUse) {
  const auto make = [](const char* name, const json& options) {
    return [=] { make_frame_core(name, options, {3, 8, 8}, 1); };
  };
  const json tokens{{"features", 8}, {"heads", 2}};
  const auto with = [&](const json& more) {
    json all = tokens;
    all.update(more);
    return all;
  };
  expect_error(make("transformr", tokens), {"transformr", "did you mean 'transformer'"});
  expect_error(make("transformer", with({{"patch", 3}})), {"whole patches", "8x8", "3x3"});
  expect_error(make("transformer", with({{"patch", 0}})), {"patch", "positive", "0"});
  expect_error(make("transformer", with({{"out_features", -1}})), {"out_features", "-1"});
  expect_error(make("transformer", with({{"patch", 4}, {"tokens", {1, 1}}})), {"tokens", "[2,2]", "[1,1]"});
  expect_error(make("transformer", {{"heads", 2}}), {"features", "none"});
  expect_error(make("s5", {{"features", 8}, {"state_size", 8}, {"patch", 4}}), {"s5 takes one token", "4x4", "8x8"});
  expect_error(make("convlstm", {{"features", 8}, {"patch", 4}}), {"[ConvLSTM]", "patch"});
  expect_error([] { make_frame_core("s5", {{"features", 8}}, {0, 8, 8}, 1); }, {"positive sizes", "0 channels"});
  const auto core = make_frame_core("transformer", tokens, {3, 8, 8}, 1);
  expect_error([&] { core->forward(at::ones({1, 1, 3, 8, 4})); }, {"[L,B,3,8,8]", "[1,1,3,8,4]"});
  expect_error([&] { core->forward(at::ones({1, 1, 3, 8, 8}, at::kDouble)); }, {"float32", "float64"});
  const auto cell = make_frame_core("convgru", {{"features", 4}}, {3, 8, 8}, 1);
  expect_error([&] { cell->forward(at::ones({1, 1, 4, 8, 8})); }, {"[L,B,3,H,W]", "[1,1,4,8,8]"});
}

int64_t count(const torch::nn::Module& module) {
  int64_t sum = 0;
  for (const auto& p : module.parameters()) sum += p.numel();
  return sum;
}

// The formulas are written from the definitions; they are counted on sizes that are quick to draw, and give the counts
// of the published sizes.
TEST(ParameterCounts, OfTheRecurrentCores) {
  const auto lstm = [](int64_t U, int64_t layers) { return 257 * U + U + layers * (9 * (U + U) * 4 * U + 2 * U); };
  for (const int64_t U : {32, 128}) {
    EXPECT_EQ(count(*make_frame_core("convlstm", {{"features", U}, {"layers", 2}}, {257, 16, 16}, 1)), lstm(U, 2));
    const auto gru = make_frame_core("convgru", {{"features", U}}, {257, 16, 16}, 1);
    EXPECT_EQ(count(*gru), 257 * U + U + 3 * 9 * (U + U) * U + 2 * U);
    const auto rnn = make_frame_core("convrnn", {{"features", U}}, {257, 16, 16}, 1);
    EXPECT_EQ(count(*rnn), 257 * U + U + 9 * (U + U) * U + 2 * U);
  }
  EXPECT_EQ(lstm(256, 8), 37'818'880);
  EXPECT_EQ(lstm(128, 8), 9'472'256);
}

TEST(ParameterCounts, OfConvS5) {
  const auto expected = [](int64_t U, int64_t N, int64_t layers) {
    const int64_t P = N / 2, norms = 3 * 2 * U, block = 2 * (9 * U * U + U);
    return 257 * U + U + layers * (3 * P + 2 * 2 * P * U * 9 + block + norms);
  };
  EXPECT_EQ(count(*make_frame_core("convs5", {{"features", 64}, {"state_size", 32}}, {257, 16, 16}, 1)),
            expected(64, 32, 1));
  EXPECT_EQ(expected(256, 256, 8), 18'959'872);
}

TEST(ParameterCounts, OfTheTokenCores) {
  const auto expected = [](int64_t D, int64_t mlp, int64_t layers, int64_t in, int64_t out, int64_t patch) {
    const int64_t attention = 4 * (D * D + D), perceptron = D * mlp + mlp + mlp * D + D, norms = 4 * D;
    const int64_t around = 2 * (D * D + D) + 2 * D + D;  // dense layers in and out, last norm, sos
    return layers * (attention + perceptron + norms) + around + patch * patch * D * (in + out);
  };
  for (const char* name : {"transformer", "performer"}) {
    const json options{{"features", 64}, {"layers", 3}, {"heads", 16}, {"mlp", 192}, {"out_features", 256}};
    EXPECT_EQ(count(*make_frame_core(name, options, {129, 8, 8}, 1)), expected(64, 192, 3, 129, 256, 8)) << name;
  }
  EXPECT_EQ(expected(1024, 4096, 8, 513, 256, 8), 153'269'248);   // 8x8 latents of 512 channels and the action
  EXPECT_EQ(expected(1024, 4096, 8, 257, 256, 16), 237'351'936);  // 16x16 latents of 256 channels and the action
}

}  // namespace
}  // namespace convssm::cores
