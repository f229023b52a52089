// Each thing that can be wrong with a user's files or options, and what is said about it.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/data/folder.h"
#include "convssm/io/video_writer.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class FolderErrors : public FolderTest {};

TEST_F(FolderErrors, PixelsThatAreNotNumbersAreFound) {
  auto values = at::rand({3, 4, 4});
  values[2][1][3] = NAN;
  npy("a.npy", values);
  expect_refused({"a.npy", "frame 2, channel 0, row 1, column 3", "1 pixels of the file are NaN"});
  for (const bool clamp : {false, true}) {
    expect_refused({"a.npy", "frame 2, channel 0, row 1, column 3", "nan"},
                   {{"low", 0}, {"high", 1}, {"clamp", clamp}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}}, 3);
  }
  values[2][1][3] = INFINITY;
  npy("a.npy", values);
  expect_refused({"inf"}, {{"low", 0}, {"high", 1}, {"clamp", true}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}},
                 3);
}

TEST_F(FolderErrors, EmptyFolders) {
  expect_refused({"holds no recordings: fields (.nc,",
                  "arrays (.npy, .npz, .h5, .hdf5), animations (.gif, .mp4, .m4v, .mov, .avi, .mkv, .webm), "
                  "pictures"});
  folder.write("clip.flv", "");
  expect_refused({"holds no recordings", ", but 1 others"});
}

TEST_F(FolderErrors, DamagedFilesAreNamed) {
  for (const char* name : {"a.npz", "a.mp4", "a.gif"}) {
    std::filesystem::remove_all(folder.path());
    folder.write(name, "not an archive at all");
    expect_refused({name});
  }
}

TEST_F(FolderErrors, FramesOfDifferentSizes) {
  npy("a.npy", numbers({3, 4, 4}));
  npy("b.npy", numbers({3, 4, 5}));
  expect_refused({"a.npy", "4x4 with 1 channel", "b.npy", "4x5"});
}

TEST_F(FolderErrors, ClipsTooShort) {
  npy("a.npy", numbers({3, 8, 8}));
  npy("b.npy", numbers({2, 8, 8}));
  expect_refused({"b.npy", "clip 0 has 2 frames", "3 are asked for"}, all_train, 3);
}

TEST_F(FolderErrors, WrongKeysAndShapes) {
  npz("a.npz", {{"videos", numbers({3, 8, 8})}, {"other", numbers({3, 8, 8})}});
  expect_refused({"a.npz", "'videos'", "did you mean"}, {{"key", "vidios"}});
  expect_refused({"2 of its arrays could be the clips", "'videos'", "data.key", "--truth-key"});
  EXPECT_EQ(open({{"key", "videos"}})->format().height, 8);
  npz("a.npz", {{"clips", numbers({3, 8, 8})}, {"labels", numbers({3})}});
  EXPECT_EQ(open()->format().height, 8);
  npz("a.npz", {{"data", numbers({9})}});
  expect_refused({"a.npz", "3 to 5 dimensions", "[9]"});
  npz("a.npz", {{"data", numbers({0, 4, 4})}});
  expect_refused({"a.npz", "[0, 4, 4] is empty"});
  npz("a.npz", {{"data", numbers({2, 3, 5, 6, 7})}});
  expect_refused({"a.npz", "[2, 3, 5, 6, 7]", "set data.layout"});
  npz("a.npz", {{"data", numbers({3, 8, 8})}});
  expect_refused({"a.npz", "layout NTHW needs 4 dimensions"}, {{"layout", "NTHW"}});
  npz("a.npz", {{"data", at::zeros({3, 8, 8}, at::kComplexFloat)}});
  expect_refused({"a.npz", "real numbers", "c64"});
}

TEST_F(FolderErrors, WrongActions) {
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::zeros({5}, at::kLong)}});
  expect_refused({"actions", "[3]", "i64 [5]"});
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::zeros({3})}});
  expect_refused({"whole numbers of shape [3]", "floats of shape [3, A]", "f32 [3]"});
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::zeros({4, 2})}});
  expect_refused({"floats of shape [3, A]", "f32 [4, 2]"});
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::full({3, 2}, INFINITY)}});
  expect_refused({"a.npz", "an action is infinite"}, all_train);
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::zeros({3}, at::kLong)}});
  npz("b.npz", {{"data", numbers({3, 8, 8})}});
  expect_refused({"either all files have actions or none", "a.npz", "whole numbers", "b.npz", "none"});
  npz("b.npz", {{"data", numbers({3, 8, 8})}, {"actions", at::zeros({3, 2})}});
  expect_refused({"all of one kind", "a.npz", "b.npz", "2 numbers per frame"});
}

TEST_F(FolderErrors, ActionsOfAnotherName) {
  npz("a.npz", {{"data", numbers({3, 8, 8})}, {"action", at::tensor({0, 4, 2}, at::kLong)}, {"other", numbers({9})}});
  const auto has_line = [](const Dataset& dataset, const std::string& part) {
    return std::ranges::any_of(dataset.summary(), [&](const auto& line) { return line.find(part) != line.npos; });
  };
  const auto without = open(all_train);
  EXPECT_TRUE(without->actions().none());
  EXPECT_TRUE(has_line(*without, "if 'action' holds them, set data.actions_key=action"));
  json named = all_train;
  named["actions_key"] = "action";
  const auto with = open(named);
  EXPECT_EQ(with->actions().count, 5);
  EXPECT_TRUE(has_line(*with, "5 different actions, action k leads to frame k"));
  EXPECT_EQ(with->clip(Split::train, 0, 3).actions[0][1].item<int64_t>(), 4);
  expect_refused({"a.npz", "no array 'acts'", "data.actions_key", "'action', which could be"},
                 {{"actions_key", "acts"}});
}

TEST_F(FolderErrors, SplitsWithoutTraining) {
  for (const char* other : {"valid", "test"}) {
    std::filesystem::remove_all(folder.path());
    npy(std::string(other) + "/a.npy", numbers({3, 8, 8}));
    npy("more/b.npy", numbers({3, 8, 8}));
    expect_refused({std::string(other) + "/", "no train/", "move the training clips to train/"});
    npy("train/c.npy", numbers({3, 8, 8}));
    EXPECT_EQ(open()->size(parse_split(other)), 1u);
  }
}

TEST_F(FolderErrors, RangesOfAnimations) {
  const auto video = io::open_video(folder.path("a.gif"), {.frames = 3, .width = 8, .height = 8, .channels = 1});
  const std::vector<uint8_t> frame(64, 9);
  for (int k = 0; k < 3; ++k) video->write(frame);
  video->close();
  EXPECT_TRUE(open(all_train)->format().is_8_bit());
  expect_error([this] { open({{"low", 0}, {"high", 1}}); }, {"a.gif", "low and high", "0 to 255"});
}

TEST_F(FolderErrors, WrongOptions) {
  npy("a.npy", numbers({3, 8, 8}));
  const auto with = [this](const json& more) { return [this, more] { open(more); }; };
  expect_error(with({{"layout", "HWX"}}), {"T, H, W and", "'HWX'"});
  expect_error(with({{"low", 0}}), {"low and high are given together"});
  expect_error(with({{"low", 2}, {"high", 1}}), {"low must be less than high"});
  expect_error(with({{"low", {0, 0}}, {"high", 1}}), {"low has 2 values", "1 channel"});
  expect_error(with({{"low", 0}, {"high", {1, 2, 3}}}), {"high has 3 values", "1 channel"});
  expect_error(with({{"channels", {"red", "green"}}}), {"channels has 2 values", "1 channel"});
  expect_error(with({{"crop", "centre"}}), {"random or start"});
  expect_error(with({{"test_fraction", 1.0}}), {"less than 1"});
  expect_error(with({{"test_fraction", 0.5}, {"valid_fraction", 0.5}}), {"together less than 1", "0.5 and 0.5"});
  expect_error(with({{"valid_fraction", -0.5}}), {"at least 0"});
  expect_error(with({{"path", ""}}), {"set path"});
  expect_error(with({{"path", "/nonexistent"}}), {"no file or folder '/nonexistent'"});
}

}  // namespace
}  // namespace convssm::data
