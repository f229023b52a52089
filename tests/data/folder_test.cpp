// The dataset of a user's own files: every layout and type, both ways to split, windows.
#include "convssm/data/folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "folder_files.h"

namespace convssm::data {
namespace {

// One clip [T,C,H,W] = [5,3,6,7] in each layout of one file.
TEST_F(FolderTest, ReadsEveryLayout) {
  const auto clips = numbers({2, 5, 3, 6, 7});
  const auto grey = numbers({2, 5, 1, 6, 7});
  struct Case {
    std::string letters;
    at::Tensor stored;
    at::Tensor clip;  // number 0
    uint64_t count;
  };
  for (const Case& c : std::vector<Case>{{"THW", grey[0].squeeze(1), grey[0], 1},
                                         {"TCHW", clips[0], clips[0], 1},
                                         {"THWC", clips[0].permute({0, 2, 3, 1}), clips[0], 1},
                                         {"NTHW", grey.squeeze(2), grey[0], 2},
                                         {"NTCHW", clips, clips[0], 2},
                                         {"NTHWC", clips.permute({0, 1, 3, 4, 2}), clips[0], 2}}) {
    SCOPED_TRACE(c.letters);
    npy("clips.npy", c.stored.contiguous());
    for (const std::string& layout : {c.letters, std::string()}) {
      const auto dataset = open({{"layout", layout}, {"test_fraction", 0.0}});
      ASSERT_EQ(dataset->size(Split::train), c.count);
      EXPECT_EQ(dataset->longest(Split::train), 5);
      EXPECT_EQ(dataset->format().height, 6);
      EXPECT_EQ(dataset->format().width, 7);
      EXPECT_EQ(dataset->format().channels, c.clip.size(1));
      EXPECT_TRUE(at::equal(dataset->clip(Split::train, 0, 5).video, expected(c.clip)));
      EXPECT_NE(text(*dataset).find("layout " + c.letters), std::string::npos) << text(*dataset);
    }
  }
}

TEST_F(FolderTest, ReadsTheFilesOfTheReferenceGenerator) {
  const auto clips = numbers({4, 6, 8, 8, 1});  // one big file [n,T,H,W,1]
  npz("mnist.npz", {{"data", clips}});
  const auto dataset = open(all_train);
  ASSERT_EQ(dataset->size(Split::train), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(at::equal(dataset->clip(Split::train, static_cast<uint64_t>(i), 6).video,
                          expected(clips[i].permute({0, 3, 1, 2}))));
  }
}

TEST_F(FolderTest, ReadsFilesOfTrainAndTestInSortedOrder) {
  for (const int i : {3, 1, 2})
    npz("train/0/" + std::to_string(i) + ".npz", {{"video", numbers({4, 6, 6, 3}, i)}}, i == 2);
  npz("test/0/9.npz", {{"video", numbers({7, 6, 6, 3}, 9)}});
  folder.write("train/notes.txt", "hello");
  folder.write("train/.hidden.npz", "not an archive");
  const auto dataset = open();
  ASSERT_EQ(dataset->size(Split::train), 3u);
  EXPECT_EQ(dataset->size(Split::test), 1u);
  EXPECT_EQ(dataset->longest(Split::train), 4);
  EXPECT_EQ(dataset->longest(Split::test), 7);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(dataset->clip(Split::train, static_cast<uint64_t>(i), 4).video,
                          expected(numbers({4, 6, 6, 3}, i + 1).permute({0, 3, 1, 2}))));
  }
  EXPECT_NE(text(*dataset).find("1 files of other kinds"), std::string::npos) << text(*dataset);
}

TEST_F(FolderTest, ReadsActions) {
  const auto actions = at::arange(8, at::kInt).view({2, 4}) % 6;
  npz("clips.npz", {{"video", numbers({2, 4, 6, 6, 3})}, {"actions", actions}});
  const auto dataset = open({{"test_fraction", 0.0}, {"crop", "start"}});
  EXPECT_EQ(dataset->action_count(), 6);
  const Clip clip = dataset->clip(Split::train, 1, 3);
  EXPECT_EQ(clip.actions.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(clip.actions, at::tensor({4, 5, 0}, at::kLong)));
}

TEST_F(FolderTest, WindowsAreAFunctionOfSeedAndIndex) {
  const auto recording = at::arange(100, at::kByte).view({100, 1, 1}).expand({100, 4, 5}).contiguous();
  npy("long.npy", recording);
  const auto dataset = open({{"test_fraction", 0.2}});
  EXPECT_EQ(dataset->longest(Split::train), 80);
  EXPECT_EQ(dataset->longest(Split::test), 20);
  std::set<int> starts;
  for (uint64_t visit = 0; visit < 200; ++visit) {
    const auto video = dataset->clip(Split::train, visit, 10).video;
    const auto start = static_cast<int>(std::lround((video[0][0][0][0].item<double>() + 1) * 127.5));
    EXPECT_TRUE(at::equal(video, expected(recording.slice(0, start, start + 10).unsqueeze(1))));
    EXPECT_TRUE(at::equal(video, open({{"test_fraction", 0.2}})->clip(Split::train, visit, 10).video));
    starts.insert(start);
  }
  EXPECT_GT(starts.size(), 50u);
  EXPECT_LE(*starts.rbegin(), 70);
  EXPECT_TRUE(at::equal(dataset->clip(Split::test, 3, 10).video, expected(recording.slice(0, 80, 90).unsqueeze(1))));
  const auto fixed = open({{"test_fraction", 0.2}, {"crop", "start"}});
  EXPECT_TRUE(at::equal(fixed->clip(Split::train, 5, 10).video, expected(recording.slice(0, 0, 10).unsqueeze(1))));
  EXPECT_NE(text(*dataset).find("its last 20 of 100 frames are for testing"), std::string::npos) << text(*dataset);
}

// Which clips are for testing depends on their names only: a new file moves none of the others.
TEST_F(FolderTest, TheSplitByNameIsStable) {
  const auto test_clips = [this] {
    std::set<int> found;
    const auto dataset = open({{"test_fraction", 0.3}});
    for (const Split split : {Split::train, Split::test}) {
      for (uint64_t i = 0; i < dataset->size(split); ++i) {
        const auto value = dataset->clip(split, i, 1).video[0][0][0][0].item<double>();
        if (split == Split::test) found.insert(static_cast<int>(std::lround((value + 1) * 127.5)));
      }
    }
    return found;
  };
  const auto add = [this](int i) { npy(fmt::format("clip{:03}.npy", i), at::full({3, 4, 4}, i, at::kByte)); };
  for (int i = 0; i < 60; i += 2) add(i);
  const auto before = test_clips();
  for (int i = 1; i < 60; i += 2) add(i);
  const auto after = test_clips();
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  for (const int clip : after) EXPECT_TRUE(clip % 2 == 1 || before.count(clip) == 1) << clip;
  EXPECT_GT(after.size(), 8u);
  EXPECT_LT(after.size(), 30u);
}

TEST_F(FolderTest, BothSplitsHaveAClipWhereThereAreTwo) {
  npy("a.npy", numbers({2, 3, 4, 4, 1}));
  for (const double fraction : {0.001, 0.999}) {
    const auto dataset = open({{"test_fraction", fraction}});
    EXPECT_EQ(dataset->size(Split::train), 1u);
    EXPECT_EQ(dataset->size(Split::test), 1u);
  }
}

TEST_F(FolderTest, RangesOfValues) {
  struct Case {
    at::Tensor values;
    double low, high;
  };
  const auto ramp = at::arange(32, at::kFloat).view({2, 4, 4}) / 31;
  for (const Case& c : std::vector<Case>{{ramp, 0, 1},
                                         {ramp.to(at::kHalf), 0, 1},
                                         {ramp.to(at::kDouble) * 2 - 1, -1, 1},
                                         {(ramp * 200).to(at::kShort), 0, 255},
                                         {(ramp > 0.5), 0, 1}}) {
    npy("a.npy", c.values);
    const auto dataset = open(all_train);
    EXPECT_EQ(dataset->format().low, c.low);
    EXPECT_EQ(dataset->format().high, c.high);
    const auto want = (c.values.to(at::kDouble) - c.low) / (c.high - c.low) * 2 - 1;
    EXPECT_LT(convssm::testing::distance(dataset->clip(Split::train, 0, 2).video.to(at::kDouble), want.unsqueeze(1)),
              1e-7);
  }
  npy("a.npy", ramp * 300 + 200);  // temperatures
  expect_refused({"200", "500", "set low and high"});
  expect_refused({"a.npy", "clip 0, frame 1, channel 0, row", "outside of low 200 to high 400", "clamp"},
                 {{"low", 200}, {"high", 400}});
  const auto given = open({{"low", 200}, {"high", 500}, {"test_fraction", 0.0}});
  EXPECT_LT(convssm::testing::distance(given->clip(Split::train, 0, 2).video, (ramp * 2 - 1).unsqueeze(1)), 1e-6);
  const auto clamped = open({{"low", 200}, {"high", 400}, {"clamp", true}, {"test_fraction", 0.0}});
  EXPECT_EQ(clamped->clip(Split::train, 0, 2).video.max().item<float>(), 1.0f);
}

// Compressed files of many clips, read by several threads at once.
TEST_F(FolderTest, ThreadsReadTheSame) {
  std::vector<at::Tensor> files;
  for (int f = 0; f < 3; ++f) {
    files.push_back(numbers({5, 4, 8, 8, 3}, f));
    npz(fmt::format("{}.npz", f), {{"data", files.back()}}, true);
  }
  const auto dataset = open(all_train);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 15; ++i) {
        const auto index = static_cast<int64_t>((7 * i + 3 * t) % 15);
        const auto video = dataset->clip(Split::train, static_cast<uint64_t>(index), 4).video;
        const auto want = expected(files[static_cast<size_t>(index / 5)][index % 5].permute({0, 3, 1, 2}));
        wrong += at::equal(video, want) ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace convssm::data
