// The splits of a folder: disjoint, stable when files are added, and none empty where there are enough clips.
#include "convssm/data/folder_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "folder_files.h"

namespace convssm::data {
namespace {

class FolderSplit : public FolderTest {
 protected:
  // A clip whose pixels are its number, in files of one clip each.
  void add(int number, const std::string& below = "") {
    npy(fmt::format("{}clip{:03}.npy", below, number), at::full({3, 4, 4}, number, at::kByte));
  }

  // The numbers of the clips of each split.
  std::map<Split, std::set<int>> split(const json& more = json::object()) {
    const auto dataset = open(more);
    std::map<Split, std::set<int>> found;
    for (const Split s : all_splits) {
      for (uint64_t i = 0; i < dataset->size(s); ++i) {
        const auto value = dataset->clip(s, i, 1).video[0][0][0][0][0].item<double>();
        EXPECT_TRUE(found[s].insert(static_cast<int>(std::lround((value + 1) * 127.5))).second)
            << "twice in " << name(s);
      }
    }
    return found;
  }

  void expect_in_summary(const std::string& part, const json& more = json::object()) {
    const std::string all = text(*open(more));
    EXPECT_NE(all.find(part), std::string::npos) << "'" << part << "' not in: " << all;
  }
};

using convssm::testing::expect_error;
using Sets = std::map<Split, std::set<int>>;

// All clips once.
void expect_partition(const Sets& sets, size_t count) {
  std::set<int> all;
  size_t sum = 0;
  for (const auto& [split, clips] : sets) all.insert(clips.begin(), clips.end()), sum += clips.size();
  EXPECT_EQ(sum, count);
  EXPECT_EQ(all.size(), count) << "a clip is in two splits";
}

// Which split a clip is in depends on its name only: a new file moves none of the others.
TEST_F(FolderSplit, ByNameIsStable) {
  const json fractions{{"test_fraction", 0.3}, {"valid_fraction", 0.2}};
  for (int i = 0; i < 60; i += 2) add(i);
  Sets before = split(fractions);
  for (int i = 1; i < 60; i += 2) add(i);
  Sets after = split(fractions);
  expect_partition(before, 30);
  expect_partition(after, 60);
  for (const Split s : all_splits) {
    for (const int clip : before[s]) EXPECT_TRUE(after[s].contains(clip)) << clip << " left " << name(s);
  }
  EXPECT_GT(after[Split::test].size(), 8u);
  EXPECT_LT(after[Split::test].size(), 30u);
  EXPECT_GT(after[Split::valid].size(), 4u);
  EXPECT_LT(after[Split::valid].size(), 22u);
  expect_in_summary(fmt::format("{} of 60 clips are for testing, by a hash", after[Split::test].size()), fractions);
  expect_in_summary(fmt::format("{} of 60 clips are for validation, by a hash", after[Split::valid].size()), fractions);
}

// The clips for testing are those that version 0.1 tested on: validation is taken from the training clips alone.
TEST_F(FolderSplit, ValidationTakesNoTestClip) {
  for (int i = 0; i < 40; ++i) add(i);
  Sets without = split({{"valid_fraction", 0.0}}), with = split({{"valid_fraction", 0.3}});
  EXPECT_EQ(without[Split::test], with[Split::test]);
  EXPECT_TRUE(without[Split::valid].empty());
  expect_partition(with, 40);
}

TEST_F(FolderSplit, EverySplitHasAClipWhereThereAreThree) {
  for (int i = 0; i < 3; ++i) add(i);
  for (const double test : {0.001, 0.5, 0.99}) {
    for (const double valid : {0.001, 0.009, 0.4}) {
      if (test + valid >= 1) continue;
      const Sets sets = split({{"test_fraction", test}, {"valid_fraction", valid}});
      EXPECT_EQ(sets.size(), 3u) << test << " " << valid;
      expect_partition(sets, 3);
    }
  }
}

TEST_F(FolderSplit, OfTwoClipsTheTrainingOneIsCutInTime) {
  npy("a.npy", numbers({2, 20, 8, 8, 1}));
  for (const double fraction : {0.001, 0.899}) {
    const json options{{"test_fraction", fraction}};
    const auto dataset = open(options);
    for (const Split s : all_splits) EXPECT_EQ(dataset->size(s), 1u) << name(s);
    EXPECT_EQ(dataset->longest(Split::train), 18);
    EXPECT_EQ(dataset->longest(Split::valid), 2);
    EXPECT_EQ(dataset->longest(Split::test), 20);
    expect_in_summary("1 of 2 clips are for testing", options);
    expect_in_summary("one clip to share: its last 2 of 20 frames are for validation", options);
  }
  const auto two = open({{"valid_fraction", 0.0}});
  EXPECT_EQ(two->longest(Split::train), 20);
  EXPECT_EQ(two->size(Split::valid), 0u);
  expect_error([&] { two->clip(Split::valid, 0, 1); }, {"holds no valid clips"});
}

TEST_F(FolderSplit, OneRecordingIsCutInTime) {
  const auto recording = at::arange(100, at::kByte).view({100, 1, 1}).expand({100, 4, 5}).contiguous();
  npy("long.npy", recording);
  const json options{{"test_fraction", 0.2}};
  const auto dataset = open(options);
  EXPECT_EQ(dataset->longest(Split::train), 70);
  EXPECT_EQ(dataset->longest(Split::valid), 10);
  EXPECT_EQ(dataset->longest(Split::test), 20);
  std::set<int> seen;
  for (const Split s : all_splits) {
    const at::Tensor all = dataset->clip(s, 0, dataset->longest(s)).video.select(-1, 0).select(-1, 0).flatten();
    for (int64_t i = 0; i < all.numel(); ++i) {
      EXPECT_TRUE(seen.insert(static_cast<int>(std::lround((all[i].item<double>() + 1) * 127.5))).second);
    }
  }
  EXPECT_EQ(seen.size(), 100u);
  expect_in_summary("the last 20 frames of all are for testing", options);
  expect_in_summary("the last 10 frames of the others are for validation", options);
  npy("long.npy", recording.slice(0, 0, 5));
  EXPECT_EQ(open()->size(Split::valid), 0u);
  expect_in_summary("nothing for validation: 0.1 of 5 frames is too little");
}

TEST_F(FolderSplit, SubFoldersAreTheSplits) {
  for (int i = 0; i < 20; ++i) add(i, "train/");
  for (int i = 100; i < 102; ++i) add(i, "test/");
  Sets sets = split();
  EXPECT_EQ(sets[Split::test], (std::set<int>{100, 101}));
  EXPECT_GE(sets[Split::valid].size(), 1u);
  EXPECT_LT(*sets[Split::valid].rbegin(), 20);
  expect_partition(sets, 22);
  expect_in_summary("of 20 clips are for validation, by a hash of their names");

  add(200, "valid/");
  sets = split();
  EXPECT_EQ(sets[Split::train].size(), 20u);
  EXPECT_EQ(sets[Split::valid], (std::set<int>{200}));
  EXPECT_EQ(sets[Split::test], (std::set<int>{100, 101}));

  std::filesystem::remove_all(folder.path("test"));
  sets = split();
  EXPECT_EQ(sets[Split::valid], (std::set<int>{200}));
  EXPECT_GE(sets[Split::test].size(), 1u);
  expect_partition(sets, 21);
}

}  // namespace
}  // namespace convssm::data
