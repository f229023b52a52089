// Clips: cutting in time and in the batch, joining, repeating, and what is refused.
#include "convssm/data/clips.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../support.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using convssm::testing::randn;

constexpr at::Tensor Clips::*kMembers[] = {&Clips::video, &Clips::actions, &Clips::inputs,
                                           &Clips::codes, &Clips::valid,   &Clips::revisit};

// B clips of T frames with everything that clips can have.
Clips full(int64_t B, int64_t T, uint64_t seed = 1) {
  Clips clips;
  clips.video = randn({B, T, 2, 3, 4}, seed).to(at::kFloat);
  clips.actions = randn({B, T, 5}, seed + 1).to(at::kFloat);
  clips.inputs = randn({B, T, 2, 3, 4}, seed + 2).to(at::kFloat);
  clips.codes = (randn({B, T, 2, 2}, seed + 3) * 100).to(at::kLong);
  clips.valid = randn({B, T, 2, 3, 4}, seed + 4) > 0;
  clips.revisit = at::arange(T, at::kLong).sub(2).clamp_min(-1).expand({B, T}).contiguous();
  clips.timing = {randn({B, T}, seed + 5).abs().to(at::kFloat) + 0.1f, randn({B, T}, seed + 6) > 1, 0.5};
  return clips;
}

void expect_same(const Clips& a, const Clips& b) {
  const auto same = [](const at::Tensor& x, const at::Tensor& y) {
    return x.defined() == y.defined() && (!x.defined() || (x.scalar_type() == y.scalar_type() && x.equal(y)));
  };
  for (const auto member : kMembers) EXPECT_TRUE(same(a.*member, b.*member));
  EXPECT_TRUE(same(a.timing.dt, b.timing.dt));
  EXPECT_TRUE(same(a.timing.resets, b.timing.resets));
  EXPECT_EQ(a.timing.step_rescale, b.timing.step_rescale);
}

TEST(Clips, KnowTheirSize) {
  EXPECT_EQ(full(3, 7).batch(), 3);
  EXPECT_EQ(full(3, 7).frames(), 7);
  const Clips codes{.codes = at::zeros({2, 5, 4, 4}, at::kLong)};
  EXPECT_EQ(codes.batch(), 2);
  EXPECT_EQ(codes.frames(), 5);
  EXPECT_EQ(Clips{}.batch(), 0);
  EXPECT_EQ(Clips{}.frames(), 0);
}

TEST(Clips, AreCutInTimeAndInTheBatch) {
  const Clips clips = full(3, 7);
  const Clips chunk = frames_of(clips, 2, 5), rows = rows_of(clips, 1, 3);
  EXPECT_EQ(chunk.frames(), 3);
  EXPECT_EQ(rows.batch(), 2);
  for (const auto member : kMembers) {
    EXPECT_TRUE(member == &Clips::revisit || (chunk.*member).equal((clips.*member).slice(1, 2, 5)));
    EXPECT_TRUE((rows.*member).equal((clips.*member).slice(0, 1, 3)));
  }
  EXPECT_TRUE(chunk.timing.dt.equal(clips.timing.dt.slice(1, 2, 5)));
  EXPECT_TRUE(rows.timing.resets.equal(clips.timing.resets.slice(0, 1, 3)));
  EXPECT_EQ(chunk.timing.step_rescale, 0.5);
  EXPECT_TRUE(chunk.video.is_alias_of(clips.video)) << "a view";
  check_clips("test", chunk);
  check_clips("test", rows);
}

TEST(Clips, RevisitsOfAPieceCountFromItsFirstFrame) {
  const auto numbers = [](std::vector<int64_t> values) { return at::tensor(values).unsqueeze(0); };
  const Clips clips{.video = at::zeros({1, 6, 1, 2, 2}), .revisit = numbers({-1, -1, 0, 1, 2, 4})};
  check_clips("test", clips);
  EXPECT_TRUE(frames_of(clips, 2, 6).revisit.equal(numbers({-1, -1, 0, 2}))) << "what was before the piece is gone";
  EXPECT_TRUE(frames_of(clips, 0, 3).revisit.equal(numbers({-1, -1, 0})));
  EXPECT_TRUE(frames_of(frames_of(clips, 1, 6), 1, 5).revisit.equal(frames_of(clips, 2, 6).revisit));
  check_clips("test", frames_of(clips, 3, 6));
}

TEST(Clips, RowsAreJoinedAgain) {
  const Clips clips = full(4, 3);
  expect_same(stack_rows({rows_of(clips, 0, 1), rows_of(clips, 1, 3), rows_of(clips, 3, 4)}), clips);
  Clips batch;
  for (int64_t b = 0; b < 4; ++b) put_row(rows_of(clips, b, b + 1), b, 4, batch);
  expect_same(batch, clips);
  expect_same(stack_rows({Clips{.codes = clips.codes}}), Clips{.codes = clips.codes});
  expect_error([] { stack_rows({}); }, {"no clips"});
  expect_error([&] { stack_rows({clips, Clips{.video = clips.video}}); }, {"1 of 2 clips"});
}

TEST(Clips, OnlyRowsThatFitAreJoined) {
  const Clips one = full(1, 3);
  const auto refuse = [&](const std::function<void(Clips&)>& change, const std::string& part) {
    Clips batch, other = full(1, 3);
    change(other);
    put_row(one, 0, 2, batch);
    expect_error([&] { put_row(other, 1, 2, batch); }, {"put_row", "clip 1", part});
  };
  refuse([](Clips& c) { c.codes = at::Tensor(); }, "lacks");
  refuse([](Clips& c) { c.video = c.video.slice(1, 0, 2); }, "[2,2,3,4]");
  refuse([](Clips& c) { c.actions = at::zeros({1, 3}, at::kLong); }, "int64 [3]");
  Clips batch;
  expect_error([&] { put_row(full(2, 3), 0, 2, batch); }, {"a batch of one"});
  expect_error([&] { put_row(one, 2, 2, batch); }, {"row 2 of 2"});
}

TEST(Clips, EveryMemberOfARowIsABatchOfOne) {
  const auto refuse = [](const std::function<void(Clips&)>& change, const std::vector<std::string>& parts) {
    for (const int64_t at : {0, 1}) {
      Clips batch, other = full(1, 3);
      change(other);
      if (at > 0) put_row(full(1, 3), 0, 2, batch);
      expect_error([&] { put_row(other, at, 2, batch); }, parts);
    }
  };
  refuse([](Clips& c) { c.actions = at::zeros({3}, at::kLong); }, {"put_row", "actions must be [1,T,...]", "[3]"});
  refuse([](Clips& c) { c.actions = at::zeros({2, 3, 5}); }, {"actions", "[2,3,5]"});
  refuse([](Clips& c) { c.valid = c.valid.expand({4, 3, 2, 3, 4}); }, {"valid", "[4,3,2,3,4]"});
  refuse([](Clips& c) { c.timing.dt = at::ones({3}); }, {"dt", "[3]"});
  refuse([](Clips& c) { c.timing.resets = at::zeros({}, at::kBool); }, {"resets", "[]"});
}

TEST(Clips, RowsOfOneBatchHaveOneStepRescale) {
  Clips slow = full(1, 3), fast = full(1, 3), batch;
  fast.timing.step_rescale = 0.25;
  put_row(slow, 0, 2, batch);
  expect_error([&] { put_row(fast, 1, 2, batch); }, {"put_row", "clip 1", "step_rescale", "0.25", "0.5"});
  expect_error([&] { stack_rows({slow, fast}); }, {"stack_rows", "step_rescale", "0.25", "0.5"});
}

TEST(Clips, RowsAreRepeated) {
  const Clips clips = full(2, 3), twice = repeat_rows(clips, 2);
  EXPECT_EQ(twice.batch(), 4);
  for (int64_t i = 0; i < 4; ++i) expect_same(rows_of(twice, i, i + 1), rows_of(clips, i / 2, i / 2 + 1));
  expect_same(repeat_rows(clips, 1), clips);
}

TEST(Clips, MaskedActionsAreOfTheSameKind) {
  EXPECT_TRUE(masked_like(at::zeros({2, 3}, at::kLong)).equal(at::full({2, 3}, -1, at::kLong)));
  const at::Tensor numbers = masked_like(at::zeros({2, 3, 4}));
  EXPECT_EQ(numbers.scalar_type(), at::kFloat);
  EXPECT_EQ(numbers.sizes(), (at::IntArrayRef{2, 3, 4}));
  EXPECT_TRUE(numbers.isnan().all().item<bool>());
  EXPECT_FALSE(masked_like({}).defined());
}

TEST(Clips, WhatDoesNotFitIsRefused) {
  check_clips("test", full(2, 3));
  check_clips("test", Clips{});
  check_clips("test", Clips{.video = at::zeros({1, 2, 1, 4, 4}), .actions = at::zeros({1, 2}, at::kLong)});
  const auto refuse = [](const std::function<void(Clips&)>& change, const std::vector<std::string>& parts) {
    Clips clips = full(2, 3);
    change(clips);
    expect_error([&] { check_clips("test", clips); }, parts);
  };
  refuse([](Clips& c) { c.video = at::zeros({2, 3, 4, 4}); }, {"[test] video", "[B,T,C,H,W]"});
  refuse([](Clips& c) { c.codes = at::zeros({2, 3, 4}, at::kLong); }, {"codes", "[B,T,h,w]"});
  refuse([](Clips& c) { c.codes = at::zeros({2, 4, 2, 2}, at::kLong); }, {"codes", "[2,4,2,2]"});
  refuse(
      [](Clips& c) {
        c.actions = at::zeros({2, 4}, at::kLong);
      },
      {"actions must be [2,3], [2,3,A] or [2,3,M,H,W]", "[2,4]"});
  refuse([](Clips& c) { c.actions = at::zeros({2, 3}); }, {"int64 [B,T] or floats [B,T,A]", "float32"});
  refuse([](Clips& c) { c.actions = at::zeros({2, 3, 1}, at::kLong); }, {"int64 [2,3,1]"});
  refuse([](Clips& c) { c.inputs = at::zeros({2, 3, 1, 3, 4}); }, {"inputs"});
  refuse([](Clips& c) { c.valid = at::ones({2, 3}, at::kBool); }, {"valid"});
  refuse([](Clips& c) { c.video = at::Tensor(); }, {"inputs must be [2,3,2,2]"});  // like the codes
  refuse([](Clips& c) { c.video = at::Tensor(), c.inputs = at::Tensor(); }, {"valid", "without a video"});
  refuse([](Clips& c) { c.revisit = c.revisit.slice(1, 1); }, {"revisit"});
  refuse([](Clips& c) { c.revisit = c.revisit.to(at::kInt); }, {"revisit must be int64"});
  refuse([](Clips& c) { c.revisit[1][2] = 2; }, {"revisit", "an earlier frame"});
  refuse([](Clips& c) { c.revisit[0][0] = -2; }, {"revisit", "an earlier frame"});
  refuse([](Clips& c) { c.timing.dt = at::ones({2, 2}); }, {"dt"});
  refuse([](Clips& c) { c.timing.dt[1][2] = 0; }, {"dt must be positive"});
  refuse([](Clips& c) { c.timing.dt[0][0] = NAN; }, {"dt must be positive"});
  refuse([](Clips& c) { c.timing.resets = at::zeros({3, 2}, at::kBool); }, {"resets"});
  refuse([](Clips& c) { c.timing.step_rescale = 0; }, {"step_rescale", "0"});
}

}  // namespace
}  // namespace convssm::data
