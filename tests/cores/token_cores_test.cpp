// Facts about Transformer and Performer: cache against recomputation, windows, bounded memory, initial values.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/cores/transformer.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::randn;

json options(const json& more = json::object()) {
  json all{{"features", 16}, {"layers", 2}, {"heads", 4}};
  all.update(more);
  return all;
}

int64_t bytes(const State& state) {
  int64_t sum = 0;
  for (const auto& [name, value] : state.items()) sum += static_cast<int64_t>(value.storage().nbytes());
  return sum;
}

TEST(TransformerCore, RecomputingEqualsTheCache) {
  torch::NoGradGuard no_grad;
  const at::Tensor x = randn({40, 2, 16}, 1).to(at::kFloat);
  const auto cached = make_core("transformer", options()),
             again = make_core("transformer", options({{"recompute", true}}));
  EXPECT_LT(distance(cached->forward(x).y, again->forward(x).y), 1e-5);
  State a, b;
  for (int64_t k = 0; k < 5; ++k) {
    const CoreOutput one = cached->step(x[k], a), two = again->step(x[k], b);
    EXPECT_LT(distance(one.y, two.y), 1e-5) << k;
    a = one.state;
    b = two.state;
  }
}

TEST(TransformerCore, AWideWindowIsNoWindow) {
  torch::NoGradGuard no_grad;
  const at::Tensor x = randn({140, 1, 16}, 1).to(at::kFloat);
  const at::Tensor y = make_core("transformer", options())->forward(x).y;
  EXPECT_LT(distance(make_core("transformer", options({{"window", 141}}))->forward(x).y, y), 1e-6);
  EXPECT_LT(distance(make_core("transformer", options({{"window", 141}, {"recompute", true}}))->forward(x).y, y), 1e-6);
  EXPECT_GT(distance(make_core("transformer", options({{"window", 140}}))->forward(x).y, y), 1e-6);
}

// With one layer, a token hears of the last W frames and of nothing before.
TEST(TransformerCore, AWindowHidesWhatIsOlder) {
  torch::NoGradGuard no_grad;
  const int64_t W = 4;
  for (const bool recompute : {false, true}) {
    const auto core = make_core("transformer", options({{"layers", 1}, {"window", W}, {"recompute", recompute}}));
    const at::Tensor x = randn({12, 1, 16}, 1).to(at::kFloat), y = core->forward(x).y;
    for (int64_t changed = 0; changed < 12; ++changed) {
      at::Tensor other = x.clone();
      other[changed] += 1;
      const at::Tensor moved = (core->forward(other).y - y).abs().amax({1, 2});
      const int64_t reach = recompute ? W - 1 : W;  // sos takes one place of a recomputed window
      for (int64_t k = 0; k < 12; ++k) {
        EXPECT_EQ(moved[k].item<float>() > 1e-6, k >= changed && k < changed + reach) << changed << " " << k;
      }
    }
  }
}

TEST(TransformerCore, TokensOfAFrameSeeEachOther) {
  torch::NoGradGuard no_grad;
  for (const char* name : {"transformer", "performer"}) {
    const auto core = make_core(name, options({{"tokens", {2, 2}}}));
    const at::Tensor x = randn({4, 1, 16, 2, 2}, 1).to(at::kFloat);
    at::Tensor other = x.clone();
    other.select(4, 1).select(3, 1)[2] += 1;  // the last token of frame 2
    const at::Tensor moved = (core->forward(other).y - core->forward(x).y).abs().amax({1, 2});
    EXPECT_LT(moved.slice(0, 0, 2).max().item<float>(), 1e-6) << name;
    EXPECT_GT(moved.slice(0, 2).min().item<float>(), 1e-5) << name;
  }
}

TEST(TokenCores, StatesThatDoNotGrow) {
  torch::NoGradGuard no_grad;
  for (const json& more : {json::object(), json{{"window", 3}}, json{{"window", 3}, {"recompute", true}}}) {
    const auto core = make_core("transformer", options(more));
    const auto after = [&](int64_t L) { return bytes(core->forward(randn({L, 1, 16}, 1).to(at::kFloat)).state); };
    EXPECT_EQ(after(10) == after(50), core->constant_state()) << more;
    if (more.empty()) {
      EXPECT_EQ(after(10), 2 * 2 * 11 * 16 * 4 + 8);  // layers, k and v, frames with sos
    }
  }
  const auto core = make_core("performer", options({{"random_features", 8}}));
  const auto sizes = [&](int64_t L) { return bytes(core->forward(randn({L, 1, 16}, 1).to(at::kFloat)).state); };
  EXPECT_TRUE(core->constant_state());
  EXPECT_EQ(sizes(200), sizes(1));
}

TEST(TokenCores, PairBytesAreTheSoftmaxOfAllHeads) {
  EXPECT_EQ(make_core("transformer", options({{"tokens", {2, 1}}}))->pair_bytes(), 2 * 4 * 2 * 2 * 4);
  EXPECT_EQ(make_core("performer", options())->pair_bytes(), 0);
}

TEST(TokenCores, EqualParameterCountsAndInitialValues) {
  const json wide{{"features", 128}, {"layers", 1}, {"heads", 4}};
  const auto transformer = make_core("transformer", wide), performer = make_core("performer", wide);
  int64_t counts[2] = {0, 0};
  for (const auto& p : transformer->parameters()) counts[0] += p.numel();
  for (const auto& p : performer->parameters()) counts[1] += p.numel();
  EXPECT_EQ(counts[0], counts[1]);
  const auto named = transformer->named_parameters();
  const auto std_of = [&](const char* name) { return named[name].std().item<double>(); };
  const auto reach = [&](const char* name) { return named[name].abs().max().item<double>() / std_of(name); };
  EXPECT_NEAR(std_of("transformer.layers.0.qkv.weight"), std::sqrt(1.0 / 128), 2e-3);
  EXPECT_NEAR(std_of("transformer.layers.0.mlp2.weight"), std::sqrt(1.0 / 512), 1e-3);
  EXPECT_NEAR(std_of("sos"), 0.02, 5e-3);
  EXPECT_GT(reach("transformer.layers.0.qkv.weight"), 3);  // not truncated
  EXPECT_LT(reach("transformer.layers.0.mlp1.weight"), 2.4);
  EXPECT_EQ(testing::max_abs(named["transformer.layers.0.out.bias"]), 0);
}

TEST(TokenCores, BadUse) {
  const auto make = [](const char* name, const json& more) { return [=] { make_core(name, options(more)); }; };
  expect_error(make("transformer", {{"features", 15}}), {"[Transformer]", "even", "15"});
  expect_error(make("performer", {{"heads", 3}}), {"[Performer]", "heads must divide the 16 features", "3"});
  expect_error(make("transformer", {{"tokens", {2}}}), {"tokens must be [h,w]", "[2]"});
  expect_error(make("transformer", {{"window", -1}}), {"window", "-1"});
  expect_error(make("transformer", {{"window", 1}, {"recompute", true}}), {"window", "at least 2", "1"});
  expect_error(make("transformer", {{"random_features", 4}}), {"[Transformer]", "random_features"});
  expect_error(make("performer", {{"random_features", 0}}), {"random_features", "0"});
  expect_error(make("performer", {{"epsilon", -1}}), {"epsilon", "-1"});
  const auto core = make_core("transformer", options({{"tokens", {2, 1}}}));
  expect_error([&] { core->forward(at::ones({3, 2, 16})); }, {"[L,B,16,2,1]", "[3,2,16]"});
  expect_error([&] { core->forward(at::ones({3, 2, 16, 1, 2})); }, {"[L,B,16,2,1]", "[3,2,16,1,2]"});
  const at::Tensor x = at::ones({3, 2, 16, 2, 1});
  expect_error([&] { core->forward(x.to(at::kDouble)); }, {"float32", "float64"});
  State state = core->forward(x).state;
  expect_error([&] { core->forward(at::ones({1, 3, 16, 2, 1}), state); }, {"layers.0.k", "[3,4,8,4]", "[2,4,8,4]"});
  State odd = state;
  odd.set("position", at::scalar_tensor(7, at::kLong));
  expect_error([&] { core->forward(x, odd); }, {"position", "multiple of the 2 tokens", "7"});
  odd.set("position", at::scalar_tensor(6, at::kLong));
  expect_error([&] { core->forward(x, odd); }, {"layers.0.k", "[2,4,6,4]"});
  State other;
  other.set("layers.0.x", at::ones({1}));
  expect_error([&] { core->forward(x, other); }, {"5 tensors (2 per layer)", "1"});
  const auto again = make_core("transformer", options({{"recompute", true}, {"window", 3}}));
  State past;
  past.set("tokens", at::ones({2, 2, 16}));
  expect_error([&] { again->forward(at::ones({1, 2, 16}), past); }, {"tokens", "[1,2,16]", "[2,2,16]"});
}

}  // namespace
}  // namespace convssm::cores
