// Arrays whose dimensions are in any order give the same frames as in the usual one.
#include <algorithm>

#include "convssm/data/clip_layout.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class ArrayOrder : public FolderTest {
 protected:
  // clips [N,T,C,H,W] with the dimensions of `letters`; those that it lacks have one element.
  static at::Tensor laid_out(const at::Tensor& clips, const std::string& letters) {
    const std::string usual = "NTCHW";
    at::Tensor values = clips;
    std::string left = usual;
    for (const char letter : usual) {
      if (letters.find(letter) != std::string::npos) continue;
      values = values.squeeze(static_cast<int64_t>(left.find(letter)));
      left.erase(left.find(letter), 1);
    }
    std::vector<int64_t> order;
    for (const char letter : letters) order.push_back(static_cast<int64_t>(left.find(letter)));
    return values.permute(order).contiguous();
  }

  void expect_frames(Recording& recording, const at::Tensor& clips) {
    const RecordingInfo& info = recording.info();
    ASSERT_EQ(clips.sizes(), (std::vector<int64_t>{info.clips, info.frames, info.channels, info.height, info.width}));
    std::vector<float> pixels(clips[0].numel());
    for (int64_t clip = 0; clip < info.clips; ++clip) {
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {4, info.frames - 4}}) {
        const at::Tensor want = clips[clip].slice(0, first, first + count);
        ASSERT_TRUE(io::to_tensor(recording.read(clip, first, count)).equal(want)) << clip << " " << first;
        recording.read_pixels(clip, first, count, {std::vector<Channel>(static_cast<size_t>(info.channels))},
                              pixels.data());
        const at::Tensor floats = at::from_blob(pixels.data(), want.sizes());
        ASSERT_TRUE(floats.allclose(expected(want.to(at::kByte)))) << clip << " " << first;
      }
    }
  }
};

// 3! orders of THW, 4! with N or C, 5! with both: 174 layouts.
TEST_F(ArrayOrder, EveryPermutation) {
  const at::Tensor all = numbers({3, 7, 2, 6, 5});
  int layouts = 0;
  for (const std::string& kept : {std::string("HTW"), std::string("HNTW"), std::string("CHTW"), std::string("CHNTW")}) {
    std::string letters = kept;
    std::ranges::sort(letters);
    do {
      SCOPED_TRACE(letters);
      at::Tensor clips = all;
      if (letters.find('N') == std::string::npos) clips = clips.slice(0, 0, 1);
      if (letters.find('C') == std::string::npos) clips = clips.slice(2, 0, 1);
      npy("a.npy", laid_out(clips, letters));
      const auto recording = open_recording(folder.path("a.npy"), {.layout = letters});
      EXPECT_EQ(recording->info().layout.letters, letters);
      expect_frames(*recording, clips);
      ++layouts;
    } while (std::ranges::next_permutation(letters).found);
  }
  EXPECT_EQ(layouts, 6 + 24 + 24 + 120);
}

TEST_F(ArrayOrder, EveryKindOfFileAndAccess) {
  const at::Tensor clips = numbers({3, 7, 2, 6, 5});
  for (const std::string letters : {"TNHWC", "NHWTC", "WHCTN"}) {
    SCOPED_TRACE(letters);
    npy("a.npy", laid_out(clips, letters));
    npz("b.npz", {{"data", laid_out(clips, letters)}});
    npz("c.npz", {{"data", laid_out(clips, letters)}}, true);
    for (const char* name : {"a.npy", "b.npz", "c.npz"}) {
      for (const Access access : {Access::random, Access::in_order}) {
        for (const uint64_t cache : {0, 1 << 20}) {
          expect_frames(
              *open_recording(folder.path(name),
                              {.layout = letters, .access = access, .cache = std::make_shared<ArrayCache>(cache)}),
              clips);
        }
      }
    }
  }
}

// Values of the file count upwards, modulo 120 (make_episode_data.py).
TEST_F(ArrayOrder, Hdf5) {
  const at::Tensor stored = (at::arange(7 * 5 * 4 * 3) % 120).to(at::kByte).view({7, 5, 4, 3});
  const std::string path = CONVSSM_SOURCE_DIR "/tests/io/data/types.h5";
  for (const char* key : {"packed", "summed"}) {
    const auto frames_first = open_recording(path, {.key = key, .layout = "TNHW"});
    expect_frames(*frames_first, stored.permute({1, 0, 2, 3}).unsqueeze(2));
    const auto channels = open_recording(path, {.key = key, .layout = "THCW", .access = Access::in_order});
    expect_frames(*channels, stored.permute({0, 2, 1, 3}).unsqueeze(0));
  }
}

TEST_F(ArrayOrder, SmallScatteredArraysAreKept) {
  npy("a.npy", numbers({16, 16, 500}));
  const auto cache = std::make_shared<ArrayCache>(1 << 20);
  open_recording(folder.path("a.npy"), {.layout = "HWT", .cache = cache})->read(0, 3, 2);
  EXPECT_EQ(cache->bytes(), 16u * 16 * 500);
  const auto small = std::make_shared<ArrayCache>(1 << 10);
  open_recording(folder.path("a.npy"), {.layout = "HWT", .cache = small})->read(0, 3, 2);
  EXPECT_EQ(small->bytes(), 0u) << "what does not fit is read in pieces";
}

TEST_F(ArrayOrder, ActionsOfClipsThatAreNotFirst) {
  const at::Tensor clips = numbers({3, 7, 1, 6, 5}), actions = at::arange(21).view({3, 7});
  npz("a.npz", {{"data", laid_out(clips, "TNHW")}, {"actions", actions}});
  const auto recording = open_recording(folder.path("a.npz"), {.layout = "TNHW"});
  EXPECT_TRUE(recording->read_actions(2, 1, 3).equal(actions[2].slice(0, 1, 4)));
}

TEST_F(ArrayOrder, AsADataset) {
  const at::Tensor clips = numbers({4, 7, 1, 6, 5});
  npy("a.npy", laid_out(clips, "TNHW"));
  json options = all_train;
  options["layout"] = "TNHW";
  const auto dataset = open(options);
  EXPECT_EQ(dataset->size(Split::train), 4u);
  EXPECT_TRUE(dataset->clip(Split::train, 2, 7).video[0].allclose(expected(clips[2])));
  EXPECT_NE(text(*dataset).find("layout TNHW: given"), std::string::npos) << text(*dataset);
}

TEST_F(ArrayOrder, WhatIsNoLayout) {
  for (const char* letters : {"TH", "THWX", "TTHW", "NTHWCC", "thw", "NCHW", "TWHN "}) {
    expect_error([&] { check_layout(letters); }, {"T, H, W and, if there are, N and C", letters});
  }
  npy("a.npy", numbers({3, 8, 8}));
  expect_refused({"a.npy", "layout HWTC needs 4 dimensions"}, {{"layout", "HWTC"}});
}

// A guess that may be wrong tells what else it could be.
TEST_F(ArrayOrder, DoubtfulGuesses) {
  const auto reason = [](std::vector<int64_t> shape) { return choose_layout("a.npy", shape, "").reason; };
  EXPECT_NE(reason({8, 8, 10}).find("set layout HWT"), std::string::npos);
  EXPECT_EQ(reason({100, 64, 64}).find("set layout"), std::string::npos);
  EXPECT_NE(reason({20, 10000, 64, 64}).find("TNHW"), std::string::npos);
  expect_error([&] { reason({64, 64, 100}); }, {"a.npy", "data.layout=HWT", "THW if there are 64 frames of 64 x 100"});
  expect_error([&] { reason({9, 32, 32, 49}); }, {"THWC", "NHWT", "NTHW if there are 9 clips with frames of 32 x 49"});
  EXPECT_EQ(choose_layout("a.npy", std::vector<int64_t>{64, 64, 100}, "THW").letters, "THW");
  npy("a.npy", numbers({2, 5, 6, 7, 8}));
  expect_refused({"cannot tell which", "another order of N, T, C, H, W"});
  EXPECT_EQ(usual_clip_letters({"NHWTC", ""}), "THWC");
  EXPECT_EQ(usual_clip_letters({"TNHW", ""}), "THW");
  EXPECT_EQ(usual_clip_letters({"NTCHW", ""}), "TCHW");
}

// The config says how many channels there are.
TEST_F(ArrayOrder, AGuessThatContradictsTheConfigIsAnError) {
  npy("a.npy", numbers({7, 5, 8, 8}));
  json options = all_train;
  options["low"] = {0, 0, 0, 0, 0}, options["high"] = {255, 255, 255, 255, 255};
  expect_refused({"a.npy", "is read as NTHW", "1 channel, but data.low has 5 values; set data.layout=TCHW"}, options);
  options["layout"] = "TCHW";
  EXPECT_EQ(open(options)->format().depth(), 5);
  options["layout"] = "NTHW";
  expect_error([&] { open(options); }, {"low has 5 values, the frames have 1 channel"});
}

}  // namespace
}  // namespace convssm::data
