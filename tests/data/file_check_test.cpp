// What training would refuse is found before it begins, or while it goes on; clips that are too short are named.
#include "convssm/data/file_check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class FileChecks : public FolderTest {
 protected:
  RecordingInfo info(const std::string& name) { return open_recording(folder.path(name))->info(); }
  static PixelRanges range(double low, double high, bool clamp = false) { return {{{"", low, high}}, clamp}; }
};

TEST_F(FileChecks, NamesThePlaceOfTheFirstBadPixel) {
  at::Tensor good = at::rand({4, 8, 9}), bad = good.clone();
  npy("a.npy", good);
  bad[3][2][5] = 1.5;
  npy("b.npy", bad);
  npz("c.npz", {{"data", bad}}, true);
  const json ranges{{"low", 0}, {"high", 1}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}};
  const auto dataset = open(ranges);
  expect_error([&] { dataset->check(); },
               {"b.npy", "clip 0, frame 3, channel 0, row 2, column 5", "1.5 is outside of low 0 to high 1", "clamp"});
  json clamped = ranges;
  clamped["clamp"] = true;
  open(clamped)->check();
  bad[1][7][0] = INFINITY;
  npz("c.npz", {{"data", bad}}, true);
  expect_error([&] { open(clamped)->check(); }, {"c.npz", "frame 1, channel 0, row 7, column 0", "inf"});
}

TEST_F(FileChecks, WholeNumbersOutsideOfTheirRange) {
  npy("a.npy", numbers({3, 8, 8}));
  open(all_train)->check();
  expect_error([&] { open({{"low", 0}, {"high", 200}})->check(); }, {"a.npy", "outside of low 0 to high 200"});
}

TEST_F(FileChecks, LargeSetsAreCheckedInTheBackground) {
  at::Tensor values = at::rand({4, 8, 9});
  values[2][1][1] = NAN;
  npy("a.npy", at::rand({4, 8, 9}));
  npy("b.npy", values);
  const FileCheck check({info("a.npy"), info("b.npy")}, range(0, 1), false, 0);
  const auto wait_for_it = [&] {
    for (int i = 0; i < 6000; ++i) {
      check.rethrow();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  expect_error(wait_for_it, {"b.npy", "frame 2, channel 0, row 1, column 1", "nan"});
  const FileCheck left({info("a.npy")}, range(0, 1), false, 0);  // ends without being asked
}

TEST_F(FileChecks, WhereErrorsAreSkippedWindowsWithBadPixelsAreLeftOut) {
  at::Tensor bad = at::rand({6, 8, 9});
  bad[2][1][1] = NAN;
  npy("a.npy", bad);
  for (const json& range : {json{{"low", 0}, {"high", 1}}, json::object()}) {
    json options = all_train;
    options.update(range);
    expect_error([&] { open(options)->check(); }, {"a.npy", "nan", "data.missing=mask"});
    options["on_error"] = "skip";
    const auto dataset = open(options);
    dataset->check();
    for (uint64_t i = 0; i < 20; ++i)
      EXPECT_TRUE(dataset->clip(Split::train, i, 2).video.isfinite().all().item<bool>());
  }
}

TEST_F(FileChecks, InfiniteActionsAreFoundWhenTheFolderIsOpened) {
  at::Tensor actions = at::zeros({3, 2});
  actions[2][1] = INFINITY;
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", actions}});
  expect_error([&] { open(all_train); }, {"a.npz", "an action is infinite"});
}

TEST_F(FileChecks, ShortClipsAreNamedAndLeftOutByChoice) {
  npy("a.npy", numbers({9, 8, 8}));
  npy("b.npy", numbers({2, 8, 8}));
  npy("c.npy", numbers({3, 8, 8}));
  const std::string which = open(all_train)->short_clips(Split::train, 5);
  for (const char* part : {"b.npy' clip 0 has 2 frames", "2 of 3 train clips are too short", "data.min_frames=5"}) {
    EXPECT_NE(which.find(part), std::string::npos) << which;
  }
  json options = all_train;
  options["min_frames"] = 5;
  const auto dataset = open(options);
  EXPECT_EQ(dataset->size(Split::train), 1u);
  EXPECT_EQ(dataset->longest(Split::train), 9);
  EXPECT_EQ(dataset->short_clips(Split::train, 5), "");
  EXPECT_NE(text(*dataset).find("clips of fewer than 5 frames are left out, in 2 of 3 files: 'b.npy' (2), 'c.npy' (3)"),
            std::string::npos)
      << text(*dataset);
  expect_error([&] { open({{"min_frames", 10}}); }, {"no file of", "min_frames = 10", "'a.npy' (9)"});
  expect_error([&] { open({{"min_frames", -1}}); }, {"min_frames must be 0 or positive"});
}

}  // namespace
}  // namespace convssm::data
