// The dataset of a user's own files: every layout and type, actions, windows.
#include "convssm/data/folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "convssm/data/order.h"
#include "convssm/io/video_writer.h"
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
      const auto dataset = open({{"layout", layout}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}});
      ASSERT_EQ(dataset->size(Split::train), c.count);
      EXPECT_EQ(dataset->longest(Split::train), 5);
      EXPECT_EQ(dataset->format().height, 6);
      EXPECT_EQ(dataset->format().width, 7);
      EXPECT_EQ(dataset->format().depth(), c.clip.size(1));
      EXPECT_TRUE(at::equal(dataset->clip(Split::train, 0, 5).video[0], expected(c.clip)));
      EXPECT_NE(text(*dataset).find("layout " + c.letters), std::string::npos) << text(*dataset);
    }
  }
}

TEST_F(FolderTest, ReadsRevisits) {
  const at::Tensor back = at::tensor({-1L, -1L, 0L, 1L, 3L}), video = numbers({5, 4, 4, 3});
  npz("a.npz", {{"video", video}, {"revisit", back}});
  EXPECT_TRUE(open(all_train)->clip(Split::train, 0, 5).revisit.equal(back.unsqueeze(0)));
  EXPECT_TRUE(open(all_train)->part(Split::train, 0, 2, 3).revisit.equal(at::tensor({-1L, -1L, 1L}).unsqueeze(0)));
  const at::Tensor wrong = at::tensor({-1L, -1L, 2L, 1L, 3L});
  npz("a.npz", {{"video", video}, {"revisit", wrong}});
  convssm::testing::expect_error([&] { open(all_train)->clip(Split::train, 0, 5); },
                                 {"a.npz", "revisit of frame 2", "found 2"});
  npz("a.npz", {{"video", video}, {"revisit", back}}, true);
  const auto kept = open(all_train);
  EXPECT_TRUE(kept->revisits(Split::train, 0, 4).equal(back.slice(0, 0, 4)));
  convssm::testing::expect_error([&] { kept->revisits(Split::train, 0, 6); }, {"has 5 frames, 6 are asked for"});
  std::filesystem::remove(folder.path("a.npz"));
  EXPECT_TRUE(kept->revisits(Split::train, 0, 5).equal(back)) << "they are read once";
  npz("a.npz", {{"video", video}, {"revisit", back.slice(0, 1)}});
  convssm::testing::expect_error([&] { open(all_train)->clip(Split::train, 0, 5); },
                                 {"revisit must be i64 [5]", "[4]"});
  npz("a.npz", {{"video", video}});
  EXPECT_FALSE(open(all_train)->clip(Split::train, 0, 5).revisit.defined());
}

TEST_F(FolderTest, ReadsTheFilesOfTheReferenceGenerator) {
  const auto clips = numbers({4, 6, 8, 8, 1});  // one big file [n,T,H,W,1]
  npz("mnist.npz", {{"data", clips}});
  const auto dataset = open(all_train);
  ASSERT_EQ(dataset->size(Split::train), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(at::equal(dataset->clip(Split::train, static_cast<uint64_t>(i), 6).video[0],
                          expected(clips[i].permute({0, 3, 1, 2}))));
  }
}

TEST_F(FolderTest, ReadsFilesOfTrainAndTestInSortedOrder) {
  for (const int i : {3, 1, 2})
    npz("train/0/" + std::to_string(i) + ".npz", {{"video", numbers({4, 6, 6, 3}, i)}}, i == 2);
  npz("test/0/9.npz", {{"video", numbers({7, 6, 6, 3}, 9)}});
  folder.write("train/notes.txt", "hello");
  folder.write("train/.hidden.npz", "not an archive");
  const auto dataset = open({{"valid_fraction", 0.0}});
  ASSERT_EQ(dataset->size(Split::train), 3u);
  EXPECT_EQ(dataset->size(Split::test), 1u);
  EXPECT_EQ(dataset->longest(Split::train), 4);
  EXPECT_EQ(dataset->longest(Split::test), 7);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(dataset->clip(Split::train, static_cast<uint64_t>(i), 4).video[0],
                          expected(numbers({4, 6, 6, 3}, i + 1).permute({0, 3, 1, 2}))));
  }
  EXPECT_NE(text(*dataset).find("1 file of other kinds"), std::string::npos) << text(*dataset);
}

TEST_F(FolderTest, ReadsActions) {
  const auto actions = at::arange(8, at::kInt).view({2, 4}) % 6;
  npz("clips.npz", {{"video", numbers({2, 4, 6, 6, 3})}, {"actions", actions}});
  const auto dataset = open({{"test_fraction", 0.0}, {"valid_fraction", 0.0}, {"crop", "start"}});
  EXPECT_EQ(dataset->actions().count, 6);
  const Clips clip = dataset->clip(Split::train, 1, 3);
  EXPECT_EQ(clip.actions.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(clip.actions[0], at::tensor({4, 5, 0}, at::kLong)));
}

TEST_F(FolderTest, NegativeActionsAreMasked) {
  const at::Tensor actions = at::tensor({-1, 2, 0, -7, 1, -1, 2, 1}, at::kInt).view({2, 4});
  npz("clips.npz", {{"video", numbers({2, 4, 6, 6, 3})}, {"actions", actions}});
  const auto dataset = open(all_train);
  EXPECT_EQ(dataset->actions().count, 3);
  EXPECT_TRUE(dataset->clip(Split::train, 0, 4).actions.equal(actions.slice(0, 0, 1).to(at::kLong)));
}

TEST_F(FolderTest, ReadsActionsThatAreNumbers) {
  at::Tensor actions = at::arange(24, at::kDouble).view({2, 4, 3}) / 7;
  actions[1][2][1] = NAN;  // masked
  for (const bool compress : {false, true}) {
    npz("clips.npz", {{"video", numbers({2, 4, 6, 6, 3})}, {"actions", actions}}, compress);
    const auto dataset =
        open({{"masked_actions", "allow"}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}, {"crop", "start"}});
    EXPECT_EQ(dataset->actions().count, 0);
    EXPECT_EQ(dataset->actions().values, 3);
    const Clips clip = dataset->clip(Split::train, 1, 3);
    EXPECT_EQ(clip.actions.scalar_type(), at::kFloat);
    EXPECT_TRUE(clip.actions[0].allclose(actions[1].slice(0, 0, 3).to(at::kFloat), 0, 0, /*equal_nan=*/true));
    EXPECT_NE(text(*dataset).find("actions of 3 numbers"), std::string::npos) << text(*dataset);
  }
}

TEST_F(FolderTest, WindowsAreAFunctionOfSeedAndIndex) {
  const auto recording = at::arange(100, at::kByte).view({100, 1, 1}).expand({100, 4, 5}).contiguous();
  npy("long.npy", recording);
  const auto dataset = open({{"test_fraction", 0.2}});
  EXPECT_EQ(dataset->longest(Split::train), 70);
  std::set<int> starts;
  for (uint64_t visit = 0; visit < 200; ++visit) {
    const auto video = dataset->clip(Split::train, visit, 10).video[0];
    const auto start = static_cast<int>(std::lround((video[0][0][0][0].item<double>() + 1) * 127.5));
    EXPECT_TRUE(at::equal(video, expected(recording.slice(0, start, start + 10).unsqueeze(1))));
    EXPECT_TRUE(at::equal(video, open({{"test_fraction", 0.2}})->clip(Split::train, visit, 10).video[0]));
    starts.insert(start);
  }
  EXPECT_GT(starts.size(), 50u);
  EXPECT_LE(*starts.rbegin(), 60);
  EXPECT_TRUE(at::equal(dataset->clip(Split::valid, 3, 5).video[0], expected(recording.slice(0, 70, 75).unsqueeze(1))));
  EXPECT_TRUE(at::equal(dataset->clip(Split::test, 3, 10).video[0], expected(recording.slice(0, 80, 90).unsqueeze(1))));
  const auto fixed = open({{"test_fraction", 0.2}, {"crop", "start"}});
  EXPECT_TRUE(at::equal(fixed->clip(Split::train, 5, 10).video[0], expected(recording.slice(0, 0, 10).unsqueeze(1))));
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
    EXPECT_EQ(dataset->format().channels[0].low, c.low);
    EXPECT_EQ(dataset->format().channels[0].high, c.high);
    const auto want = (c.values.to(at::kDouble) - c.low) / (c.high - c.low) * 2 - 1;
    EXPECT_LT(convssm::testing::distance(dataset->clip(Split::train, 0, 2).video[0].to(at::kDouble), want.unsqueeze(1)),
              1e-7);
  }
  npy("a.npy", ramp * 300 + 200);  // temperatures
  expect_refused({"200", "500", "set low and high"});
  expect_refused({"a.npy", "clip 0, frame 1, channel 0, row", "outside of low 200 to high 400", "clamp"},
                 {{"low", 200}, {"high", 400}});
  const auto given = open({{"low", 200}, {"high", 500}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}});
  EXPECT_LT(convssm::testing::distance(given->clip(Split::train, 0, 2).video[0], (ramp * 2 - 1).unsqueeze(1)), 1e-6);
  const auto clamped =
      open({{"low", 200}, {"high", 400}, {"clamp", true}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}});
  EXPECT_EQ(clamped->clip(Split::train, 0, 2).video[0].max().item<float>(), 1.0f);
  EXPECT_EQ(clamped->format().to_json()["clamp"], true) << "for contexts of the model";
}

TEST_F(FolderTest, ChannelsHaveRangesAndNamesOfTheirOwn) {
  at::Tensor fields = at::rand({2, 4, 2, 5, 6}, at::kDouble);  // [N,T,C,H,W]: temperature and wind
  fields.select(2, 0).mul_(60).add_(250);
  fields.select(2, 1).mul_(40).sub_(20);
  const json given{{"low", {250, -20}},
                   {"high", {310, 20}},
                   {"channels", {"t850", "u10"}},
                   {"test_fraction", 0.0},
                   {"valid_fraction", 0.0}};
  for (const bool last : {false, true}) {
    npy("a.npy", last ? fields.permute({0, 1, 3, 4, 2}).contiguous() : fields);
    json options = given;
    options["layout"] = last ? "NTHWC" : "NTCHW";
    const auto dataset = open(options);
    EXPECT_EQ(dataset->format().channels, (std::vector<Channel>{{"t850", 250, 310}, {"u10", -20, 20}}));
    at::Tensor want = fields[1].clone();
    want.select(1, 0).sub_(280).div_(30);
    want.select(1, 1).div_(20);
    EXPECT_LT(convssm::testing::distance(dataset->clip(Split::train, 1, 4).video[0].to(at::kDouble), want), 1e-6);
    EXPECT_NE(text(*dataset).find("values t850 250 to 310, u10 -20 to 20 become -1 to 1: given"), std::string::npos)
        << text(*dataset);
    options["high"] = {310, 10};
    expect_refused({"a.npy", "channel 1 (u10)", "outside of low -20 to high 10"}, options, 4);
    options["high"] = 310;  // for all channels
    EXPECT_EQ(open(options)->format().channels[1].high, 310);
    EXPECT_EQ(open(options)->format().channels[1].low, -20);
  }
}

TEST_F(FolderTest, ReadsAnimations) {
  const auto frames = numbers({8, 8, 8, 1});
  const auto write = [&](const std::string& name, int64_t count) {
    const auto video = io::open_video(folder.path(name), {.frames = count, .width = 8, .height = 8, .channels = 1});
    for (int64_t t = 0; t < count; ++t) video->write({frames[t].data_ptr<uint8_t>(), 64});
    video->close();
  };
  for (const char* name : {"a.gif", "b.gif", "c.gif"}) write(name, 5);
  folder.write("notes.txt", "");
  const auto dataset = open(all_train);
  ASSERT_EQ(dataset->size(Split::train), 3u);
  EXPECT_EQ(dataset->longest(Split::train), 5);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        dataset->clip(Split::train, i, 5).video[0].equal(expected(frames.slice(0, 0, 5).permute({0, 3, 1, 2}))));
  }
  EXPECT_TRUE(dataset->format().is_8_bit());
  EXPECT_TRUE(dataset->actions().none());
  EXPECT_NE(text(*dataset).find("1 file of other kinds"), std::string::npos) << text(*dataset);

  npy("clip.npy", numbers({4, 6, 6}));  // animations beside arrays are there to be looked at
  EXPECT_EQ(open(all_train)->size(Split::train), 1u);
  EXPECT_EQ(open(all_train)->format().height, 6);

  write("d.mp4", 8);
  const auto film = open({{"path", folder.path("d.mp4")}, {"test_fraction", 0.25}, {"valid_fraction", 0.25}});
  EXPECT_EQ(film->format().depth(), 3);
  EXPECT_EQ(film->longest(Split::train), 4);
  EXPECT_EQ(film->longest(Split::valid), 2);
  EXPECT_EQ(film->longest(Split::test), 2);
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
        const auto video = dataset->clip(Split::train, static_cast<uint64_t>(index), 4).video[0];
        const auto want = expected(files[static_cast<size_t>(index / 5)][index % 5].permute({0, 3, 1, 2}));
        wrong += at::equal(video, want) ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Every frame of long and short clips is trained on equally often.
TEST_F(FolderTest, LongClipsAreVisitedMoreOften) {
  npy("a.npy", at::zeros({10, 8, 8}, at::kByte));
  npy("b.npy", at::full({90, 8, 8}, 255, at::kByte));
  const auto long_ones = [](const Dataset& dataset) {
    int64_t count = 0;
    for (uint64_t i = 0; i < 1000; ++i)
      count += dataset.clip(Split::train, i, 5).video[0][0][0][0][0].item<float>() > 0;
    return count;
  };
  EXPECT_NEAR(static_cast<double>(long_ones(*open(all_train))), 900, 30);
  EXPECT_EQ(long_ones(*open(all_train)), long_ones(*open(all_train))) << "a function of seed and index";
  json start = all_train;
  start["crop"] = "start";
  EXPECT_EQ(long_ones(*open(start)), 500) << "always the same window";
}

TEST(VisitedPart, EqualPartsOnceOthersAsLongAsTheyAre) {
  const std::vector<uint64_t> equal{7, 14, 21, 28}, other{1, 2, 100};
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(visited_part(i, equal, 3), i % 4);
  for (uint64_t epoch = 0; epoch < 50; ++epoch) {
    int64_t last = 0;
    for (uint64_t i = 0; i < 3; ++i) last += visited_part(3 * epoch + i, other, 3) == 2;
    EXPECT_GE(last, 2) << "2.94 of 3 visits";
  }
}

}  // namespace
}  // namespace convssm::data
