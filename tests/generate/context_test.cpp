// Contexts of forecasts: clips of every kind of file, in the units of the model, with all their actions.
#include "convssm/generate/context.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/base/file_memory.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "convssm/io/video_writer.h"
#include "tests/base/scratch_folder.h"
#include "tests/data/field_files.h"
#include "tests/support.h"

namespace convssm::generate {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

const data::FrameFormat kBytes{1, 6, 4};

data::FrameFormat weather() {
  data::FrameFormat format(2, 6, 4);
  format.channels = {{"t850", 250, 310}, {"u10", -20, 20}};
  return format;
}

at::Tensor frames(int64_t count, const data::FrameFormat& format) {
  return randn({count, format.depth(), format.height, format.width}, 1).tanh().to(at::kFloat);
}

TEST(Context, KnowsItsIntervalsWhereTheyAreWanted) {
  const ScratchFolder scratch;
  data::testing::write_fields(scratch.path("a.nc"), {.hours = {0, 1, 2, 3.25, 4, 5, 6, 7}});
  data::FrameFormat format(1, 4, 6, 200, 400);
  format.channels[0].name = "t2m", format.channels[0].units = "K";
  ContextOptions options{.first = 1, .frames = 3};
  options.fields.variables = {"t2m"};
  EXPECT_FALSE(read_context(scratch.path("a.nc"), format, options).clips.timing.dt.defined());
  options.intervals = true;
  const at::Tensor dt = read_context(scratch.path("a.nc"), format, options).clips.timing.dt;
  EXPECT_TRUE(dt.allclose(at::tensor({1.0f, 1.0f, 1.25f}).unsqueeze(0)));
}

TEST(Context, IsInTheRangesOfTheModel) {
  const ScratchFolder scratch;
  const at::Tensor video = frames(3, weather());
  io::write_npy(scratch.path("k.npy"), io::to_array(data::in_units(video, weather())));
  const Context whole = read_context(scratch.path("k.npy"), weather(), {});
  EXPECT_EQ(whole.clips.video.sizes(), (std::vector<int64_t>{1, 3, 2, 6, 4}));
  EXPECT_LT(distance(whole.clips.video[0], video), 1e-5);
  EXPECT_FALSE(whole.clips.actions.defined() || whole.coming.defined());
  EXPECT_EQ(whole.layout, "THWC");
  const Context start = read_context(scratch.path("k.npy"), weather(), {.frames = 2});
  EXPECT_TRUE(start.clips.video.equal(whole.clips.video.slice(1, 0, 2)));
  EXPECT_EQ(start.description, "1 clip of 2 frames, 6 x 4 with 2 channels (THWC)");
}

TEST(Context, IsAnyWindowOfTheRecording) {
  const ScratchFolder scratch;
  const at::Tensor video = frames(6, kBytes), bytes = data::in_units(video, kBytes).squeeze(-1);
  io::write_npz(
      scratch.path("k.npz"),
      std::vector<io::NamedArray>{{"data", io::to_array(bytes)}, {"actions", io::to_array(at::arange(6, at::kLong))}},
      true);
  const at::Tensor all = read_context(scratch.path("k.npz"), kBytes, {}).clips.video;
  const auto expect = [&](const ContextOptions& o, int64_t begin, int64_t end) {
    const Context found = read_context(scratch.path("k.npz"), kBytes, o);
    EXPECT_TRUE(found.clips.video.equal(all.slice(1, begin, end)));
    EXPECT_TRUE(found.clips.actions[0].equal(at::arange(begin, end, at::kLong)));
    EXPECT_EQ(found.coming.defined(), end < 6);
    if (end < 6) {
      EXPECT_TRUE(found.coming[0].equal(at::arange(end, 6, at::kLong)));
    }
    EXPECT_EQ(found.layout, "THW");
  };
  expect({.frames = -2}, 4, 6);
  expect({.frames = -6}, 0, 6);
  expect({.first = 1}, 1, 6);
  expect({.first = 1, .frames = 3}, 1, 4);
  expect({.first = -3, .frames = 1}, 3, 4);
}

TEST(Context, AFolderOfPicturesIsOneClip) {
  const ScratchFolder scratch;
  const at::Tensor bytes = data::in_units(frames(12, kBytes), kBytes);
  for (int64_t k = 0; k < 12; ++k) {
    const at::Tensor frame = bytes[k].contiguous();
    const uint8_t* pixels = frame.data_ptr<uint8_t>();
    io::write_png(scratch.path("f" + std::to_string(k) + ".png"), {4, 6, 1, {pixels, pixels + 24}});
  }
  const Context found = read_context(scratch.path(), kBytes, {.first = 1, .frames = 10});  // f10 after f9
  EXPECT_EQ(found.clips.video.sizes(), (std::vector<int64_t>{1, 10, 1, 6, 4}));
  EXPECT_LT(distance(found.clips.video[0], frames(12, kBytes).slice(0, 1, 11)), 1.0 / 255 + 1e-6);
  EXPECT_EQ(found.layout, "THWC");
  expect_error([&] { read_context(scratch.path(), kBytes, {.frames = 13}); }, {"has 12 frames", "13"});
  expect_error([&] { read_context(scratch.path(), kBytes, {.clip = 1}); }, {"1 clips", "number 1"});
  std::filesystem::create_directory(scratch.path("more"));
  std::filesystem::copy_file(scratch.path("f0.png"), scratch.path("more/f0.png"));
  expect_error([&] { read_context(scratch.path(), kBytes, {}); }, {"12 and 1 frames"});  // a clip of its own
}

TEST(Context, AFolderOfRecordingsIsAClipEach) {
  const ScratchFolder scratch;
  const auto write = [&](const std::string& name, int64_t count, double value) {
    io::write_npy(scratch.path(name), io::to_array(at::full({count, 6, 4}, value, at::kByte)));
  };
  write("a.npy", 5, 0), write("b.npy", 7, 255);
  expect_error([&] { read_context(scratch.path(), kBytes, {}); }, {"5 and 7 frames", "--context-frames"});
  const Context last = read_context(scratch.path(), kBytes, {.frames = -3});
  EXPECT_EQ(last.clips.video.sizes(), (std::vector<int64_t>{2, 3, 1, 6, 4}));
  EXPECT_EQ(last.clips.video[0].max().item<float>(), -1);
  EXPECT_EQ(last.clips.video[1].min().item<float>(), 1);
  EXPECT_EQ(read_context(scratch.path(), kBytes, {.clip = 1}).clips.video.size(1), 7);
  EXPECT_EQ(read_context(scratch.path(), kBytes, {.frames = 6, .clip = 1}).clips.video.size(1), 6);  // a.npy has 5
  expect_error([&] { read_context(scratch.path(), weather(), {}); }, {"a.npy", "1 channel"});
  const ScratchFolder empty;
  expect_error([&] { read_context(empty.path(), kBytes, {}); }, {"no recordings", ".png"});
}

TEST(Context, HasTheActionsOfTheWholeFile) {
  const ScratchFolder scratch;
  const at::Tensor clips = at::zeros({2, 3, 6, 4, 1}, at::kByte);
  for (const at::Tensor& actions : {at::arange(6, at::kLong).view({2, 3}), at::rand({2, 3, 5})}) {
    const std::vector<io::NamedArray> arrays = {{"data", io::to_array(clips)}, {"actions", io::to_array(actions)}};
    for (const bool compress : {false, true}) {
      io::write_npz(scratch.path("a.npz"), arrays, compress);
      const Context second = read_context(scratch.path("a.npz"), kBytes, {.frames = 2, .clip = 1});
      EXPECT_EQ(second.clips.video.sizes(), (std::vector<int64_t>{1, 2, 1, 6, 4}));
      EXPECT_EQ(second.clips.video.max().item<float>(), -1);
      EXPECT_TRUE(second.coming.equal(actions.slice(0, 1).slice(1, 2)));
      EXPECT_TRUE(second.clips.actions.equal(actions.slice(0, 1).slice(1, 0, 2)));
      const Context both = read_context(scratch.path("a.npz"), kBytes, {.frames = 2});
      EXPECT_EQ(both.clips.batch(), 2);
      EXPECT_TRUE(both.coming.equal(actions.slice(1, 2)));
      data::check_clips("test", both.clips);
    }
  }
}

TEST(Context, AnimationsAreBytesWhateverTheUnits) {
  const ScratchFolder scratch;
  const data::FrameFormat floats(1, 6, 4, 0, 1);
  const at::Tensor bytes = data::in_units(frames(4, kBytes), kBytes);
  const auto gif = io::open_video(scratch.path("g.gif"), {.frames = 4, .width = 4, .height = 6, .channels = 1});
  for (int64_t k = 0; k < 4; ++k) gif->write({bytes[k].data_ptr<uint8_t>(), 24});
  gif->close();
  for (const data::FrameFormat& format : {kBytes, floats}) {
    const Context moving = read_context(scratch.path("g.gif"), format, {.frames = 3});
    EXPECT_LT(distance(moving.clips.video[0], frames(4, kBytes).slice(0, 0, 3)), 1.0 / 255 + 1e-6);
  }
}

TEST(Context, ValuesOutsideAreWhatTheyWereInTraining) {
  const ScratchFolder scratch;
  io::write_npy(scratch.path("a.npy"), io::to_array(at::full({3, 6, 4}, 300.f)));
  expect_error([&] { read_context(scratch.path("a.npy"), kBytes, {}); }, {"a.npy", "300", "outside"});
  nlohmann::json json = kBytes.to_json();
  json["clamp"] = true;
  const Context clamped = read_context(scratch.path("a.npy"), data::FrameFormat::from_json(json), {});
  EXPECT_TRUE(clamped.clips.video.eq(1).all().item<bool>());
}

TEST(Context, WhatDoesNotFitIsRefused) {
  const ScratchFolder scratch;
  io::write_npy(scratch.path("a.npy"), io::to_array(at::zeros({3, 6, 4}, at::kByte)));
  const auto refuse = [&](const data::FrameFormat& format, const ContextOptions& o,
                          const std::vector<std::string>& parts) {
    expect_error([&] { read_context(scratch.path("a.npy"), format, o); }, parts);
  };
  refuse(weather(), {}, {"a.npy", "6 x 4 with 1 channel ", "takes 6 x 4 with 2 channels"});
  refuse(kBytes, {.frames = 4}, {"has 3 frames, a context of 4"});
  refuse(kBytes, {.frames = -4}, {"has 3 frames, a context of 4"});
  refuse(kBytes, {.first = 3}, {"has 3 frames", "number 3"});
  refuse(kBytes, {.first = 1, .frames = -1}, {"either the last 1 frames"});
  refuse(kBytes, {.clip = 1}, {"holds 1 clips, number 1"});
}

TEST(Context, AVideoOfAGreyModelIsOneOfIts) {
  const ScratchFolder scratch;
  const data::FrameFormat grey{1, 16, 16}, colour{3, 16, 16};
  const auto write = [&](const std::string& name, int64_t channels) {
    const auto video = io::open_video(scratch.path(name), {2, 16, 16, channels, 10, 1});
    for (const int value : {40, 200}) {
      std::vector<uint8_t> frame(static_cast<size_t>(16 * 16 * channels), static_cast<uint8_t>(value));
      if (channels == 3) frame[0] = 255, frame[1] = 0;
      video->write(frame);
    }
    video->close_early();
  };
  write("grey.mp4", 1);
  write("grey.gif", 1);
  write("colour.gif", 3);
  const at::Tensor back = read_context(scratch.path("grey.mp4"), grey, {}).clips.video;
  EXPECT_EQ(back.sizes(), (std::vector<int64_t>{1, 2, 1, 16, 16}));
  EXPECT_NEAR(back[0][1].mean().item<double>(), 200 / 127.5 - 1, 0.03);
  EXPECT_EQ(read_context(scratch.path("grey.gif"), colour, {}).clips.video.sizes(),
            (std::vector<int64_t>{1, 2, 3, 16, 16}));
  expect_error([&] { read_context(scratch.path("colour.gif"), grey, {}); }, {"colour.gif", "in colour", "1 channel"});
}

TEST(Context, TakesNoMoreMemoryThanAFileMay) {
  const ScratchFolder scratch;
  io::write_npy(scratch.path("k.npy"), io::Array(io::DType::u8, {100, 6, 4, 1}));
  const struct Limit {
    Limit() { set_file_memory_limit(5000); }
    ~Limit() { set_file_memory_limit(default_file_memory); }
  } limit;
  expect_error([&] { read_context(scratch.path("k.npy"), kBytes, {}); },
               {"k.npy", "--context-frames", "--file-memory"});
  EXPECT_EQ(read_context(scratch.path("k.npy"), kBytes, {.frames = 50}).clips.frames(), 50);
}

}  // namespace
}  // namespace convssm::generate
