// Steps of a plan on tokens, which are pixels of a small frame: attention of several heads, rows of a table, picked places.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/nn/frame_plan.h"
#include "tests/support.h"

namespace convssm::nn {
namespace {

using testing::distance;
using testing::randn;

constexpr int64_t kBatch = 2;

at::Tensor plan_input(FramePlan& plan, const std::string& name, int64_t channels, int64_t h, int64_t w, Buffer& buffer,
                      uint64_t seed) {
  buffer = plan.state(name, channels, h, w);
  return randn({kBatch, channels, h, w}, seed).to(at::kFloat);
}

TEST(FramePlanTokens, AttentionOfSeveralHeads) {
  for (const int64_t heads : {1, 2, 3}) {
    FramePlan plan({.batch = kBatch});
    Buffer q, k, v;
    const at::Tensor qs = plan_input(plan, "q", 12, 1, 5, q, 1), ks = plan_input(plan, "k", 12, 3, 7, k, 2),
                     vs = plan_input(plan, "v", 12, 3, 7, v, 3);
    const Buffer y = plan.attention(q, k, v, heads);
    plan.copy(y, plan.state("y", y.channels, y.height, y.width));
    plan.finish();
    plan.doors().at("q").copy_(qs), plan.doors().at("k").copy_(ks), plan.doors().at("v").copy_(vs);
    plan.run();
    const auto split = [&](const at::Tensor& x) {  // [B,C,h,w] -> [B,heads,pixels,size]
      return x.flatten(2).to(at::kDouble).view({kBatch, heads, 12 / heads, -1}).transpose(2, 3);
    };
    const at::Tensor scores =
        at::matmul(split(qs), split(ks).transpose(2, 3)) / std::sqrt(12.0 / static_cast<double>(heads));
    const at::Tensor expected = at::matmul(scores.softmax(-1), split(vs)).transpose(2, 3).reshape({kBatch, 12, 1, 5});
    EXPECT_LT(distance(plan.doors().at("y").to(at::kDouble), expected), 1e-5) << heads;
  }
}

TEST(FramePlanTokens, RowsOfATableAndPickedPlaces) {
  FramePlan plan({.batch = kBatch});
  Buffer base;
  const at::Tensor bases = plan_input(plan, "base", 4, 2, 3, base, 1), table = randn({5, 4}, 2).to(at::kFloat);
  const at::Tensor choice = plan.door("choice", {kBatch, 6}, at::kLong),
                   places = plan.door("places", {kBatch, 2}, at::kLong);
  const Buffer y = plan.pick(plan.look_up(table, choice, base), places);
  plan.copy(y, plan.state("y", 4, 1, 2));
  plan.finish();
  plan.doors().at("base").copy_(bases);
  choice.copy_(at::arange(12).view({kBatch, 6}).remainder(5));
  places.copy_(at::tensor({5, 0, 3, 3}, at::kLong).view({kBatch, 2}));
  plan.run();
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t place = places[b][i].item<int64_t>(), row = choice[b][place].item<int64_t>();
      const at::Tensor expected = bases[b].flatten(1).select(1, place) + table[row];
      EXPECT_LT(distance(plan.doors().at("y")[b].select(1, 0).select(1, i), expected), 1e-6) << b << " " << i;
    }
  }
  places[1][0] = 6;
  testing::expect_error([&] { plan.run(); }, {"places are 0 to 5", "6"});
  places[1][0] = 0, choice[0][2] = 5;
  testing::expect_error([&] { plan.run(); }, {"rows are 0 to 4", "5"});
}

}  // namespace
}  // namespace convssm::nn
