// Clips that are written and read again by the dataset `folder` are the clips of the dataset that made them.
#include "convssm/data/write_clips.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"

namespace convssm::data {
namespace {

TEST(WriteClips, MadeFilesAreReadBackExactly) {
  ScratchFolder folder;
  const auto dataset = make_dataset({{"name", "moving-mnist"}, {"image_size", 40}}, 9);
  for (const std::string name : {"folder", "all.npz", "all.npy"}) {
    SCOPED_TRACE(name);
    const std::string out = folder.path(name);
    uint64_t done = 0;
    write_clips(*dataset, {.out = out, .clips = 3, .frames = 6}, [&](uint64_t n) { done = n; });
    EXPECT_EQ(done, 3u);
    const auto back =
        make_dataset({{"name", "folder"}, {"path", out}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}}, 1);
    ASSERT_EQ(back->size(Split::train), 3u);
    for (uint64_t i = 0; i < 3; ++i) {
      const auto a = dataset->clip(Split::train, i, 6).video, b = back->clip(Split::train, i, 6).video;
      EXPECT_LT(convssm::testing::distance(a, b), 1e-6);
    }
  }
}

TEST(WriteClips, ActionsAreKept) {
  ScratchFolder folder;
  const auto video = (at::arange(2 * 4 * 5 * 5 * 3, at::kLong) % 256).to(at::kByte).view({2, 4, 5, 5, 3});
  const auto actions = at::arange(8, at::kLong).view({2, 4});
  io::write_npz(folder.path("in.npz"),
                std::vector<io::NamedArray>{{"video", io::to_array(video)}, {"actions", io::to_array(actions)}});
  const auto dataset = make_dataset(
      {{"name", "folder"}, {"path", folder.path("in.npz")}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}}, 1);
  for (const std::string name : {"folder", "all.npz"}) {
    write_clips(*dataset, {.out = folder.path(name), .clips = 2, .frames = 4}, [](uint64_t) {});
    const auto back = make_dataset(
        {{"name", "folder"}, {"path", folder.path(name)}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}}, 1);
    for (int64_t i = 0; i < 2; ++i) {
      const Clips clip = back->clip(Split::train, static_cast<uint64_t>(i), 4);
      EXPECT_TRUE(at::equal(clip.actions[0], actions[i]));
      EXPECT_TRUE(at::equal(io::to_tensor(to_bytes(clip.video[0])), video[i]));
    }
  }
  convssm::testing::expect_error(
      [&] { write_clips(*dataset, {.out = folder.path("x.npy"), .clips = 2, .frames = 4}, [](uint64_t) {}); },
      {".npy file cannot hold the actions"});
}

TEST(WriteClips, ActionsThatAreNumbersAreKept) {
  ScratchFolder folder;
  const at::Tensor video = at::zeros({2, 4, 5, 5, 3}, at::kByte), actions = at::rand({2, 4, 2});
  io::write_npz(folder.path("in.npz"),
                std::vector<io::NamedArray>{{"video", io::to_array(video)}, {"actions", io::to_array(actions)}});
  const nlohmann::json all{{"name", "folder"}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}};
  const auto open = [&](const std::string& name) {
    nlohmann::json options = all;
    options["path"] = folder.path(name);
    return make_dataset(options, 1);
  };
  for (const std::string name : {"folder", "all.npz"}) {
    write_clips(*open("in.npz"), {.out = folder.path(name), .clips = 2, .frames = 4}, [](uint64_t) {});
    EXPECT_EQ(open(name)->actions().values, 2);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(open(name)->clip(Split::train, static_cast<uint64_t>(i), 4).actions[0].equal(actions[i]));
    }
  }
}

TEST(WriteClips, WhatIsWrittenForASplitIsReadAsThatSplit) {
  ScratchFolder folder;
  const auto dataset = make_dataset({{"name", "moving-mnist"}, {"image_size", 40}}, 9);
  for (const Split split : all_splits) {
    write_clips(*dataset, {.out = folder.path(), .split = split, .clips = 2, .frames = 3}, [](uint64_t) {});
  }
  const auto back = make_dataset({{"name", "folder"}, {"path", folder.path()}, {"crop", "start"}}, 1);
  for (const Split split : all_splits) {
    ASSERT_EQ(back->size(split), 2u) << name(split);
    const auto a = dataset->clip(split, 1, 3).video, b = back->clip(split, 1, 3).video;
    EXPECT_LT(convssm::testing::distance(a, b), 1e-6) << name(split);
  }
}

TEST(WriteClips, NamesSortAsNumbers) {
  EXPECT_EQ(clip_name(Split::valid, 7), "valid/00/clip-000007.npz");
  EXPECT_EQ(clip_name(Split::test, 7), "test/00/clip-000007.npz");
  EXPECT_EQ(clip_name(Split::train, 12345), "train/12/clip-012345.npz");
}

}  // namespace
}  // namespace convssm::data
