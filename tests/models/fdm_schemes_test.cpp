// Which frames the schemes of sampling look at and draw: the vectors of the published schemes, and that every frame is drawn once.
#include <gtest/gtest.h>

#include <algorithm>

#include "convssm/models/latent_fdm/schemes.h"
#include "tests/support.h"

namespace convssm::models::latent_fdm {
namespace {

FrameNumbers upto(int64_t first, int64_t end) {
  FrameNumbers numbers;
  for (int64_t i = first; i < end; ++i) numbers.push_back(i);
  return numbers;
}

FrameNumbers joined(FrameNumbers a, const FrameNumbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// All stages of a future of T - context frames; looks at each that it is one.
std::vector<Stage> stages_of(const SchemeOptions& o, int64_t context, int64_t T) {
  FrameNumbers finished = upto(0, context);
  std::vector<Stage> stages;
  while (static_cast<int64_t>(finished.size()) < T) {
    const Stage stage = next_stage(o, finished, context, T - static_cast<int64_t>(finished.size()));
    EXPECT_FALSE(stage.latent.empty());
    EXPECT_LE(stage.observed.size() + stage.latent.size(), static_cast<size_t>(o.frames));
    EXPECT_TRUE(std::ranges::is_sorted(stage.observed) && std::ranges::is_sorted(stage.latent));
    for (const int64_t frame : stage.observed) EXPECT_TRUE(std::ranges::binary_search(finished, frame)) << frame;
    for (const int64_t frame : stage.latent) EXPECT_FALSE(std::ranges::binary_search(finished, frame)) << frame;
    if (stage.latent.empty()) break;
    finished = joined(finished, stage.latent);
    std::ranges::sort(finished);
    stages.push_back(stage);
  }
  EXPECT_EQ(finished, upto(0, T));
  return stages;
}

constexpr SchemeOptions published(Scheme scheme) { return {scheme, 20, 10, 300}; }

TEST(FdmSchemes, HierarchyOf36Frames) {
  const auto stages = stages_of(published(Scheme::hierarchy), 36, 300);
  ASSERT_EQ(stages.size(), 27u);
  EXPECT_EQ(stages[0].observed, (FrameNumbers{0, 3, 7, 11, 15, 19, 23, 27, 31, 35}));
  EXPECT_EQ(stages[0].latent, (FrameNumbers{36, 65, 94, 123, 153, 182, 211, 241, 270, 299}));
  EXPECT_EQ(stages[1].observed, joined(upto(32, 37), {65, 94, 123, 153, 182}));
  EXPECT_EQ(stages[1].latent, upto(37, 47));
}

TEST(FdmSchemes, HierarchyOf144Frames) {
  const auto stages = stages_of(published(Scheme::hierarchy), 144, 300);
  ASSERT_EQ(stages.size(), 16u);
  EXPECT_EQ(stages[0].observed, (FrameNumbers{0, 15, 31, 47, 63, 79, 95, 111, 127, 143}));
  EXPECT_EQ(stages[0].latent, (FrameNumbers{144, 161, 178, 195, 213, 230, 247, 265, 282, 299}));
  EXPECT_EQ(stages[1].observed, joined(upto(140, 145), {161, 178, 195, 213, 230}));
  EXPECT_EQ(stages[1].latent, upto(145, 155));
}

TEST(FdmSchemes, AutoregLooksAtTheLastFrames) {
  const auto stages = stages_of(published(Scheme::autoreg), 36, 300);
  ASSERT_EQ(stages.size(), 27u);
  EXPECT_EQ(stages[0].observed, upto(26, 36));
  EXPECT_EQ(stages[0].latent, upto(36, 46));
  EXPECT_EQ(stages[26].observed, upto(286, 296));
  EXPECT_EQ(stages[26].latent, upto(296, 300));
  const auto early = stages_of(published(Scheme::autoreg), 3, 40);
  EXPECT_EQ(early[0].observed, upto(0, 3));
  EXPECT_EQ(early[0].latent, upto(3, 13));
}

TEST(FdmSchemes, LongRangeKeepsTheContext) {
  const auto stages = stages_of(published(Scheme::long_range), 36, 300);
  ASSERT_EQ(stages.size(), 27u);
  EXPECT_EQ(stages[0].observed, upto(26, 36));
  EXPECT_EQ(stages[1].observed, joined(upto(31, 36), upto(41, 46)));
  EXPECT_EQ(stages[26].observed, joined(upto(31, 36), upto(291, 296)));
  const auto early = stages_of(published(Scheme::long_range), 3, 40);
  EXPECT_EQ(early[1].observed, joined(upto(0, 3), upto(8, 13)));
}

TEST(FdmSchemes, DrawNoMoreThanTheyMay) {
  for (const Scheme scheme : {Scheme::autoreg, Scheme::long_range}) {
    const Stage one = next_stage(published(scheme), upto(0, 50), 50, 1);
    EXPECT_EQ(one.latent, upto(50, 51));
    EXPECT_EQ(one.observed, upto(40, 50));
  }
}

// Hierarchies of every shape draw every frame once, also where less than S frames are to come or the frames between take all places.
TEST(FdmSchemes, HierarchiesOfEveryShapeAreWhole) {
  for (int64_t K = 2; K <= 9; ++K) {
    for (int64_t S = 1; S < K; ++S) {
      for (const auto& [context, T] : {std::pair<int64_t, int64_t>{1, 2}, {1, 30}, {7, 9}, {12, 40}, {29, 30}})
        stages_of({Scheme::hierarchy, K, S, T}, context, T);
    }
  }
}

TEST(FdmSchemes, AnotherHierarchyBeginsWithTheLastHalf) {
  const SchemeOptions o{Scheme::hierarchy, 6, 3, 20};
  EXPECT_EQ(hierarchy_origin(o, 19), 0);
  EXPECT_EQ(hierarchy_end(o, 19), 20);
  EXPECT_EQ(hierarchy_origin(o, 20), 10);
  EXPECT_EQ(hierarchy_end(o, 20), 30);
  const Stage stage = next_stage(o, upto(10, 20), 20, 99);
  EXPECT_EQ(stage.observed, (FrameNumbers{10, 14, 19}));
  EXPECT_EQ(stage.latent, (FrameNumbers{20, 24, 29}));
  testing::expect_error([&] { next_stage(o, upto(15, 20), 20, 99); }, {"no frame 10", "sampling.scheme"});
}

TEST(FdmSchemes, HaveNames) {
  for (const Scheme scheme : {Scheme::autoreg, Scheme::long_range, Scheme::hierarchy})
    EXPECT_EQ(parse_scheme(name(scheme)), scheme);
}

}  // namespace
}  // namespace convssm::models::latent_fdm
