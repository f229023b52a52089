// Recordings: the same frames from every kind of file, at random and in order, and files of a folder.
#include "convssm/data/recording.h"

#include <gtest/gtest.h>

#include "convssm/data/pixels.h"
#include "convssm/data/recording_files.h"
#include "convssm/io/png.h"
#include "convssm/io/video_writer.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class Recordings : public FolderTest {
 protected:
  void animation(const std::string& name, const at::Tensor& frames) {  // u8 [T,H,W,C]
    const auto video = io::open_video(
        folder.path(name),
        {.frames = frames.size(0), .width = frames.size(2), .height = frames.size(1), .channels = frames.size(3)});
    for (int64_t t = 0; t < frames.size(0); ++t) {
      const at::Tensor frame = frames[t].contiguous();
      video->write({frame.data_ptr<uint8_t>(), static_cast<size_t>(frame.numel())});
    }
    video->close();
  }

  // Chunks of a recording are those of its clips [N,T,C,H,W], in both kinds of access.
  void expect_holds(const std::string& name, const at::Tensor& clips, const RecordingOptions& options = {}) {
    SCOPED_TRACE(name);
    for (const Access access : {Access::random, Access::in_order}) {
      RecordingOptions o = options;
      o.access = access;
      const auto recording = open_recording(folder.path(name), o);
      const RecordingInfo& info = recording->info();
      ASSERT_EQ(clips.sizes(), (std::vector<int64_t>{info.clips, info.frames, info.channels, info.height, info.width}));
      for (int64_t clip = 0; clip < info.clips; ++clip) {
        for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {4, info.frames - 4}}) {
          const at::Tensor want = clips[clip].slice(0, first, first + count);
          EXPECT_TRUE(io::to_tensor(recording->read(clip, first, count)).equal(want)) << clip << " " << first;
        }
      }
      if (access == Access::random) {  // and back
        EXPECT_TRUE(io::to_tensor(recording->read(0, 2, 1)).equal(clips[0].slice(0, 2, 3)));
      }
    }
  }
};

TEST_F(Recordings, EveryKindGivesItsFrames) {
  const at::Tensor clips = numbers({3, 7, 2, 6, 5});
  npy("a.npy", clips);
  expect_holds("a.npy", clips);
  npz("b.npz", {{"clips", clips.permute({0, 1, 3, 4, 2}).contiguous().to(at::kFloat)}}, true);
  expect_holds("b.npz", clips.to(at::kFloat));
  npz("c.npz", {{"other", at::zeros({9})}, {"x", clips[0].select(1, 0).to(at::kShort)}, {"y", clips}});
  expect_holds("c.npz", clips.slice(0, 0, 1).slice(2, 0, 1).to(at::kShort), {.key = "x"});
  const at::Tensor film = numbers({1, 6, 1, 8, 10});
  animation("d.gif", film[0].permute({0, 2, 3, 1}));
  expect_holds("d.gif", film);
  expect_holds("d.gif", film, {.cache = std::make_shared<ArrayCache>(1)});
}

TEST_F(Recordings, InOrderNothingIsKept) {
  npz("a.npz", {{"data", numbers({3, 7, 6, 6, 2})}}, true);
  const auto cache = std::make_shared<ArrayCache>(1 << 20);
  const auto in_order = open_recording(folder.path("a.npz"), {.access = Access::in_order, .cache = cache});
  in_order->read(1, 2, 3);
  EXPECT_EQ(cache->bytes(), 0u);
  expect_error([&] { in_order->read(0, 2, 1); }, {"is read in order", "a.npz"});
  open_recording(folder.path("a.npz"), {.cache = cache})->read(1, 2, 3);
  EXPECT_EQ(cache->bytes(), 3u * 7 * 6 * 6 * 2);
}

TEST_F(Recordings, InOrderIsAtRandomWhereChunksLieInTheFile) {
  const at::Tensor clips = numbers({3, 7, 2, 6, 5});
  npy("a.npy", clips);
  npz("b.npz", {{"data", clips}});
  for (const char* name : {"a.npy", "b.npz"}) {
    const auto recording = open_recording(folder.path(name), {.access = Access::in_order});
    for (const int64_t clip : {2, 0, 1}) {
      EXPECT_TRUE(io::to_tensor(recording->read(clip, 1, 3)).equal(clips[clip].slice(0, 1, 4))) << name << clip;
    }
  }
}

TEST_F(Recordings, TellWhatTheyAre) {
  npz("a.npz", {{"video", numbers({2, 3, 6, 6, 1})}, {"actions", at::zeros({2, 3, 4}, at::kDouble)}});
  const RecordingInfo array = open_recording(folder.path("a.npz"), {.name = "short"})->info();
  EXPECT_EQ(array.kind, "array");
  EXPECT_EQ(array.name, "short");
  EXPECT_EQ(array.key, "video");
  EXPECT_EQ(array.layout.letters, "NTHWC");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 6, 6, 1}));
  EXPECT_TRUE(array.has_actions);
  EXPECT_EQ(array.action_values, 4);
  EXPECT_FALSE(array.always_bytes) << "u8 by choice";
  EXPECT_FALSE(open_recording(folder.path("a.npz"), {.actions = false})->info().has_actions);
  io::write_png(folder.path("p.png"), {4, 3, 3, std::vector<uint8_t>(36, 7)});
  const auto picture = open_recording(folder.path("p.png"));
  EXPECT_EQ(picture->info().kind, "picture");
  EXPECT_TRUE(picture->info().always_bytes);
  EXPECT_EQ(picture->info().frames, 1);
  EXPECT_EQ(picture->info().channels, 3);
  EXPECT_FALSE(picture->read_actions(0, 0, 1).defined());
  EXPECT_TRUE(holds_arrays("a.npz"));
  EXPECT_FALSE(holds_arrays("p.png"));
  EXPECT_FALSE(holds_arrays("p.txt"));
  EXPECT_EQ(count_clips(folder.path("a.npz"), {}), 2);
  EXPECT_EQ(count_clips(folder.path("p.png"), {}), 1);
}

TEST_F(Recordings, ActionsOfAnyPart) {
  const at::Tensor whole = at::arange(12, at::kInt).view({3, 4}) - 1, floats = at::rand({3, 4, 2});
  npz("a.npz", {{"data", numbers({3, 4, 6, 6, 1})}, {"actions", whole}});
  npz("b.npz", {{"data", numbers({3, 4, 6, 6, 1})}, {"actions", floats}}, true);
  for (const Access access : {Access::random, Access::in_order}) {
    const auto a = open_recording(folder.path("a.npz"), {.access = access});
    const auto b = open_recording(folder.path("b.npz"), {.access = access});
    EXPECT_TRUE(a->read_actions(0, 0, 4).equal(whole[0].to(at::kLong)));
    EXPECT_TRUE(a->read_actions(2, 1, 3).equal(whole[2].slice(0, 1, 4).to(at::kLong)));
    EXPECT_TRUE(b->read_actions(2, 0, 4).equal(floats[2]));
    EXPECT_TRUE(b->read_actions(1, 0, 2).equal(floats[1].slice(0, 0, 2)));
  }
}

// As many values as before, or fewer, in another shape or type.
TEST_F(Recordings, ArraysThatChangeWhileTheyAreReadAreErrors) {
  const at::Tensor before = numbers({8, 6, 6});
  for (const at::Tensor& after : {numbers({2, 12, 12}), numbers({4, 6, 6}), numbers({8, 6, 6}).to(at::kFloat)}) {
    for (const char* layout : {"THW", "HTW"}) {
      const at::Tensor stored = std::string(layout) == "THW" ? before : before.transpose(0, 1).contiguous();
      for (const Access access : {Access::random, Access::in_order}) {
        npy("a.npy", stored);
        npz("b.npz", {{"data", stored}}, true);
        for (const char* name : {"a.npy", "b.npz"}) {
          const auto recording = open_recording(folder.path(name), {.layout = layout, .access = access});
          npy("a.npy", after);
          npz("b.npz", {{"data", after}}, true);
          try {
            recording->read(0, 1, 2);
            ADD_FAILURE() << name << layout;
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
            EXPECT_NE(std::string(error.what()).find("has changed since it was opened"), std::string::npos)
                << error.what();
          }
          expect_error([&] { reopen_in_order(recording->info()); }, {"has changed since it was opened", name});
          npy("a.npy", stored);
          npz("b.npz", {{"data", stored}}, true);
        }
      }
    }
  }
}

TEST_F(Recordings, WhatIsNotThereIsRefused) {
  npy("a.npy", numbers({3, 8, 8}));
  const auto recording = open_recording(folder.path("a.npy"));
  for (const auto& [clip, first, count] : std::vector<std::array<int64_t, 3>>{
           {1, 0, 1}, {-1, 0, 1}, {0, 3, 1}, {0, 0, 4}, {0, -1, 1}, {0, 0, 0}, {0, 1, INT64_MAX}}) {
    expect_error([&, clip = clip, first = first, count = count] { recording->read(clip, first, count); },
                 {"a.npy", "1 clips of 3 frames"});
  }
  std::vector<float> out(64);
  expect_error([&] { recording->read_pixels(0, 0, 1, {{{}, {}}}, out.data()); }, {"1 channels", "ranges of 2"});
  expect_error([&] { open_recording(folder.path("none.npy")); }, {"none.npy"});
  expect_error([&] { open_recording(folder.path("none.gif")); }, {"none.gif"});
}

TEST_F(Recordings, OneKindOfAFolderOrAll) {
  for (const char* name : {"b.gif", "x/a.mp4", "p.png", "c.npy", "notes.txt", ".hidden.npy"}) folder.write(name, "");
  const auto found = [this](Kinds kinds) { return find_recordings(folder.path(), kinds); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found(Kinds::all).names, (Names{"b.gif", "c.npy", "p.png", "x/a.mp4"}));
  EXPECT_EQ(found(Kinds::all).others, 1u);
  EXPECT_EQ(found(Kinds::one).names, (Names{"c.npy"}));
  EXPECT_EQ(found(Kinds::one).others, 4u);
  std::filesystem::remove(folder.path("c.npy"));
  EXPECT_EQ(found(Kinds::one).names, (Names{"b.gif", "x/a.mp4"}));
  EXPECT_EQ(recording_path(folder.path(), "x/a.mp4"), folder.path("x/a.mp4"));
  EXPECT_EQ(recording_path(folder.path("b.gif"), "b.gif"), folder.path("b.gif"));
  EXPECT_EQ(find_recordings(folder.path("notes.txt"), Kinds::one).names, (Names{"notes.txt"}));
  expect_error([this] { find_recordings(folder.path("none"), Kinds::all); }, {"no file or folder"});
}

}  // namespace
}  // namespace convssm::data
