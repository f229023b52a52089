#include "convssm/io/video_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/animation.h"
#include "convssm/io/png.h"
#include "malformed.h"
#include "samples.h"
#include "videos.h"

namespace convssm::io {
namespace {

std::vector<Frame> smooth_frames(const VideoFormat& format) {
  std::vector<Frame> frames;
  for (int64_t t = 0; t < format.frames; ++t) {
    frames.push_back(smooth_frame(format.width, format.height, format.channels, t));
  }
  return frames;
}

Array write_and_read(const std::string& name, const VideoFormat& format) {
  const ScratchFolder folder;
  const auto video = open_video(folder.path(name), format);
  for (const Frame& frame : smooth_frames(format)) video->write(frame);
  EXPECT_FALSE(std::filesystem::exists(folder.path(name)));
  video->close();
  return read_animation(folder.path(name));
}

TEST(Video, PicturesAreScaled) {
  const VideoFormat grey{.frames = 6, .width = 8, .height = 6, .channels = 1, .scale = 3};
  std::vector<Frame> large;
  for (const Frame& frame : smooth_frames(grey)) large.push_back(enlarged(frame, 8, 6, 1, 3));
  expect_equal(write_and_read("a.GIF", grey), stack(large, 18, 24, 1));
  const VideoFormat colour{.frames = 6, .width = 32, .height = 32, .scale = 2};
  large.clear();
  for (const Frame& frame : smooth_frames(colour)) large.push_back(enlarged(frame, 32, 32, 3, 2));
  const Array expected = stack(large, 64, 64, 3), back = write_and_read("a.mp4", colour);
  ASSERT_EQ(back.shape(), expected.shape());
  EXPECT_GT(psnr(back.values<uint8_t>(), expected.values<uint8_t>()), 30);
}

// Frames of one value, their number: what is in the strip?
std::vector<int> strip_of(int64_t frames, int64_t width, int64_t scale = 1) {
  const ScratchFolder folder;
  const auto video = open_video(folder.path("a.png"), {frames, width, 2, 1, 10, scale});
  for (int64_t t = 0; t < frames; ++t) video->write(Frame(static_cast<size_t>(2 * width), static_cast<uint8_t>(t)));
  video->close();
  const Image image = read_png(folder.path("a.png"));
  EXPECT_EQ(image.height, 2 * scale);
  const int64_t step = width * scale + 2;
  EXPECT_EQ((image.width + 2) % step, 0);
  std::vector<int> found;
  for (int64_t x = 0; x < image.width; ++x) {
    const int pixel = image.pixels[static_cast<size_t>(x)];
    if (x % step == 0) found.push_back(pixel);
    EXPECT_EQ(pixel, x % step < width * scale ? found.back() : 255);
    EXPECT_EQ(pixel, image.pixels[static_cast<size_t>((2 * scale - 1) * image.width + x)]);
  }
  return found;
}

TEST(Video, AStripShowsFramesEvenlySpaced) {
  EXPECT_EQ(strip_of(1, 3), (std::vector{0}));
  EXPECT_EQ(strip_of(3, 3, 2), (std::vector{0, 1, 2}));
  std::vector<int> all(20), every_tenth(20);
  for (int i = 0; i < 20; ++i) all[static_cast<size_t>(i)] = i, every_tenth[static_cast<size_t>(i)] = 10 * i;
  EXPECT_EQ(strip_of(20, 3), all);
  EXPECT_EQ(strip_of(191, 3), every_tenth);
  EXPECT_EQ(strip_of(200, 10000), (std::vector{0, 100, 199}));  // wider ones have no place
  const std::vector<int> some = strip_of(33, 1);
  EXPECT_EQ(some.size(), 20u);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 32);
  const VideoFormat colour{.frames = 2, .width = 4, .height = 3};
  EXPECT_EQ(write_and_read("a.png", colour).shape(), (std::vector<int64_t>{1, 3, 10, 3}));
}

TEST(Video, CountsFrames) {
  const ScratchFolder folder;
  for (const char* name : {"a.gif", "a.mp4", "a.png"}) {
    SCOPED_TRACE(name);
    {
      const auto video = open_video(folder.path(name), {2, 4, 4, 1});
      video->write(Frame(16));
      expect_error(ErrorKind::usage, "expected 2 frames, got 1", [&] { video->close(); });
      expect_error(ErrorKind::usage, "has 16 bytes, got 15", [&] { video->write(Frame(15)); });
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    const auto video = open_video(folder.path(name), {2, 4, 4, 1});
    video->write(Frame(16));
    video->write(Frame(16));
    expect_error(ErrorKind::usage, "more than 2 frames", [&] { video->write(Frame(16)); });
    video->close();
    expect_error(ErrorKind::usage, "after close()", [&] { video->write(Frame(16)); });
    expect_error(ErrorKind::usage, "after close()", [&] { video->close(); });
    EXPECT_TRUE(std::filesystem::remove(folder.path(name)));
  }
}

TEST(Video, Refuses) {
  const ScratchFolder folder;
  for (const char* name : {"a.gif", "a.mp4", "a.png"}) {
    expect_error(ErrorKind::usage, "channels, got 2; write .npy", [&] { open_video(folder.path(name), {1, 4, 4, 2}); });
  }
  for (const char* name : {"a.npy", "a.flv", "a", "gif"}) {
    expect_error(ErrorKind::usage, "ends with .gif, .mp4, .mkv, .avi, .webm, .png; got", [&] {
      open_video(folder.path(name), {1, 4, 4, 1});
    });
  }
  expect_error(ErrorKind::usage, "must not be empty, got [0, 4, 4, 1]", [&] {
    open_video(folder.path("a.gif"), {0, 4, 4, 1});
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Video, ReadsAnimationsAndPicturesAlone) {
  const ScratchFolder folder;
  for (const char* name : {"a.npy", "a.npz", "a.mpg", "gif"}) {
    expect_error(ErrorKind::usage,
                 "[read_animation] the name of an animation ends with .gif, .mp4, .mov, .avi, .mkv or .webm",
                 [&] { read_animation(folder.path(name)); });
  }
  expect_error(ErrorKind::io, "No such file", [&] { read_animation(folder.path("a.gif")); });
}

}  // namespace
}  // namespace convssm::io
