// Actions of frames: none are made up unless the model learned to do without.
#include "convssm/generate/actions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support.h"

namespace convssm::generate {
namespace {

using testing::expect_error;

const ActionRules kStrict{{.count = 3}}, kLearned{{.count = 3}, true}, kNumbers{{.values = 2}, true},
    kOne{{.count = 1}};

TEST(CompleteActions, AreCutToTheFrames) {
  const at::Tensor known = at::arange(8, at::kLong).view({2, 4});
  EXPECT_TRUE(complete_actions(known, 2, 3, kStrict, "a.npy", "").equal(known.slice(1, 0, 3)));
}

TEST(CompleteActions, MissingOnesAreRefusedOrMasked) {
  const at::Tensor known = at::ones({2, 4}, at::kLong);
  expect_error([&] { complete_actions(known, 2, 6, kStrict, "a.npy", "Do this"); },
               {"a.npy", "4 of 6 frames", "whole numbers 0 to 2", "Do this"});
  expect_error([&] { complete_actions({}, 2, 6, kStrict, "a.npy", ""); }, {"a.npy has no actions"});
  const at::Tensor filled = complete_actions(known, 2, 6, kLearned, "a.npy", "");
  EXPECT_TRUE(filled.slice(1, 0, 4).equal(known));
  EXPECT_TRUE(filled.slice(1, 4).eq(-1).all().item<bool>());
  EXPECT_TRUE(complete_actions({}, 2, 6, kNumbers, "", "").isnan().all().item<bool>());
}

TEST(CompleteActions, AreOfTheKindOfTheModel) {
  expect_error(
      [] {
        complete_actions(at::ones({1, 4}, at::kLong), 1, 4, kNumbers, "a.npy", "");
      },
      {"a.npy", "one whole number", "2 numbers"});
  expect_error([] { complete_actions(at::ones({1, 4, 3}), 1, 4, kNumbers, "a.npy", ""); }, {"3 numbers", "2 numbers"});
}

TEST(CompleteActions, AModelWithoutNeedsNone) {
  EXPECT_FALSE(complete_actions({}, 1, 4, {}, "", "").defined());
  EXPECT_FALSE(complete_actions({}, 1, 4, kOne, "", "").defined());
  EXPECT_FALSE(complete_actions(at::ones({1, 4}, at::kLong), 1, 4, {}, "", "").defined());
  const at::Tensor filled = complete_actions(at::full({1, 2}, -1, at::kLong), 1, 3, kOne, "", "");
  EXPECT_EQ(filled.sizes(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(filled[0][2].item<int64_t>(), 0);
}

TEST(ForEachClip, OneSequenceIsForAll) {
  EXPECT_EQ(for_each_clip(at::zeros({1, 4}), 3, "a.npy").size(0), 3);
  EXPECT_EQ(for_each_clip(at::zeros({3, 4}), 3, "a.npy").size(0), 3);
  expect_error([] { for_each_clip(at::zeros({2, 4}), 3, "a.npy"); }, {"a.npy", "2 clips", "3"});
}

}  // namespace
}  // namespace convssm::generate
