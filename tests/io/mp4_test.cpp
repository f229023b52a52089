#include "convssm/io/mp4.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/video_read.h"
#include "malformed.h"
#include "videos.h"

namespace convssm::io {
namespace {

std::string write_mp4(const std::vector<Frame>& frames, const VideoFormat& format) {
  const ScratchFolder folder;
  Mp4Writer writer(folder.path("a.mp4"), format);
  for (const Frame& frame : frames) writer.write(frame);
  writer.close();
  return read_text(folder.path("a.mp4"));
}

Array decode(const std::string& bytes) { return read_video(memory_source("memory", as_bytes(bytes))); }

std::vector<Frame> smooth_frames(int64_t count, int64_t width, int64_t height, int64_t channels) {
  std::vector<Frame> frames;
  for (int64_t t = 0; t < count; ++t) frames.push_back(smooth_frame(width, height, channels, t));
  return frames;
}

TEST(Mp4, SmoothVideosSurvive) {
  const auto frames = smooth_frames(60, 64, 48, 3);
  ::testing::internal::CaptureStderr();
  const Array back = decode(write_mp4(frames, of_size(64, 48, 3)));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // libav and x264 are silent
  ASSERT_EQ(back.shape(), (std::vector<int64_t>{60, 48, 64, 3}));
  for (size_t t = 0; t < frames.size(); ++t) {  // each frame in its place
    EXPECT_GT(psnr(back.values<uint8_t>().subspan(t * frames[t].size(), frames[t].size()), frames[t]), 30) << t;
  }
}

TEST(Mp4, GreyStaysGreyAndBrightnessStays) {
  for (const int value : {0, 17, 128, 255}) {
    const Array back = decode(write_mp4({Frame(32 * 32, static_cast<uint8_t>(value))}, of_size(32, 32, 1)));
    ASSERT_EQ(back.shape(), (std::vector<int64_t>{1, 32, 32, 3}));
    for (const uint8_t pixel : back.values<uint8_t>()) ASSERT_NEAR(pixel, value, 2);
  }
}

TEST(Mp4, ColoursStay) {
  for (const Frame& colour : {Frame{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 0}, {30, 90, 200}}) {
    Frame frame;
    for (int i = 0; i < 32 * 32; ++i) frame.insert(frame.end(), colour.begin(), colour.end());
    const Array back = decode(write_mp4({frame, frame}, of_size(32, 32, 3)));
    for (size_t i = 0; i < back.element_count(); ++i) ASSERT_NEAR(back.values<uint8_t>()[i], colour[i % 3], 4);
  }
}

TEST(Mp4, OddSidesRepeatTheirLastLine) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{33, 21}, {1, 1}, {2, 3}}) {
    const Frame frame = smooth_frame(width, height, 1, 0);
    const Array back = decode(write_mp4({frame}, of_size(width, height, 1)));
    const int64_t rows = height + height % 2, columns = width + width % 2;
    ASSERT_EQ(back.shape(), (std::vector<int64_t>{1, rows, columns, 3}));
    Frame expected;
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        const auto pixel = frame[static_cast<size_t>(std::min(y, height - 1) * width + std::min(x, width - 1))];
        expected.insert(expected.end(), 3, pixel);
      }
    }
    EXPECT_GT(psnr(back.values<uint8_t>(), expected), 35);
  }
}

TEST(Mp4, Scales) {
  const Frame frame = smooth_frame(20, 16, 3, 0);
  const Array back = decode(write_mp4({frame}, of_size(20, 16, 3, 25, 4)));
  ASSERT_EQ(back.shape(), (std::vector<int64_t>{1, 64, 80, 3}));
  EXPECT_GT(psnr(back.values<uint8_t>(), enlarged(frame, 20, 16, 3, 4)), 30);
}

TEST(Mp4, AnyRate) {
  for (const double fps : {0.01, 0.5, 7.3, 23.976, 60.0, 1000.0}) {
    EXPECT_EQ(decode(write_mp4(smooth_frames(7, 16, 16, 1), of_size(16, 16, 1, fps))).shape()[0], 7) << fps;
  }
}

TEST(Mp4, AppearsWholeOrNotAtAll) {
  const ScratchFolder folder;
  {
    Mp4Writer writer(folder.path("a.mp4"), of_size(16, 16, 1));
    writer.write(Frame(256));
    EXPECT_FALSE(std::filesystem::exists(folder.path("a.mp4")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  Mp4Writer writer(folder.path("a.mp4"), of_size(16, 16, 1));
  expect_error(ErrorKind::usage, "has 256 bytes, got 5", [&] { writer.write(Frame(5)); });
  writer.write(Frame(256));
  writer.close();
  EXPECT_EQ(read_video(folder.path("a.mp4")).shape()[0], 1);
  expect_error(ErrorKind::usage, "after close()", [&] { writer.write(Frame(256)); });
  expect_error(ErrorKind::usage, "after close()", [&] { writer.close(); });
}

TEST(Mp4, EqualFramesGiveEqualFiles) {
  const auto frames = smooth_frames(5, 32, 32, 3);
  EXPECT_EQ(write_mp4(frames, of_size(32, 32, 3)), write_mp4(frames, of_size(32, 32, 3)));
}

TEST(Mp4, RefusesToWrite) {
  const ScratchFolder folder;
  expect_error(ErrorKind::usage, "channels, got 2", [&] { Mp4Writer(folder.path("a.mp4"), of_size(2, 2, 2)); });
  expect_error(ErrorKind::usage, "1 to 16384", [&] { Mp4Writer(folder.path("a.mp4"), of_size(20000, 2, 1)); });
  expect_error(ErrorKind::usage, "at least one frame",
               [&] { Mp4Writer(folder.path("a.mp4"), of_size(2, 2, 1)).close(); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expect_error(ErrorKind::io, "cannot create", [] { Mp4Writer("/nowhere/a.mp4", of_size(2, 2, 1)); });
}

TEST(Mp4, DamagedFilesAreRefusedOrRead) {
  const std::string good = write_mp4(smooth_frames(4, 16, 16, 1), of_size(16, 16, 1));
  const auto survives = [](const std::string& bytes) {
    try {
      decode(bytes);
    } catch (const Error&) {
    }
  };
  for (size_t length = 0; length < good.size(); ++length) survives(good.substr(0, length));
  std::string bad = good;
  for (size_t i = 0; i < bad.size(); ++i) {
    bad[i] = static_cast<char>(good[i] ^ 0x55);
    survives(bad);
    bad[i] = good[i];
  }
  for (const std::string bytes : {"", "GIF89a", "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"}) {
    EXPECT_THROW(decode(bytes), FormatError);
  }
  EXPECT_THROW(decode(good.substr(0, good.size() / 2)), FormatError);
  expect_error(ErrorKind::io, "No such file", [] { read_video("/nowhere/a.mp4"); });
}

// More than one key frame, and frames that are shown in another order than they are stored.
TEST(Mp4, AnyWindowEqualsWholeDecoding) {
  std::vector<Frame> frames = smooth_frames(620, 32, 16, 3);
  for (size_t t = 300; t < 330; ++t) frames[t] = noise_frame(32 * 16 * 3, static_cast<uint32_t>(t));
  const std::string bytes = write_mp4(frames, of_size(32, 16, 3));
  const auto source = memory_source("memory", as_bytes(bytes));
  const Array whole = read_video(source);
  const auto index = index_video(source);
  ASSERT_TRUE(index.has_value());
  ASSERT_EQ(index->frames(), 620);
  EXPECT_EQ(index->height, 16);
  EXPECT_GE(index->keys.size(), 3u);
  EXPECT_EQ(index->keys[0].first, 0);
  const auto equals = [&](VideoFrames& video, int64_t first, int64_t count) {
    const Array some = video.read(first, count);
    return some.shape() == std::vector<int64_t>{count, 16, 32, 3} &&
           std::ranges::equal(some.bytes(),
                              whole.bytes().subspan(static_cast<size_t>(first) * 1536, some.byte_count()));
  };
  VideoFrames kept(source, *index);  // goes on, back and far ahead
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 3}, {3, 20}, {40, 1}, {249, 3}, {10, 2}, {500, 30}, {530, 1}, {619, 1}, {0, 620}, {300, 31}}) {
    VideoFrames fresh(source, *index);
    EXPECT_TRUE(equals(fresh, first, count)) << first;
    EXPECT_TRUE(equals(kept, first, count)) << first;
  }
  for (const auto& key : index->keys) {
    for (const int64_t first : {key.first - 1, key.first, key.first + 1}) {
      if (first < 0) continue;
      EXPECT_TRUE(equals(kept, first, 2)) << first;
    }
  }
  expect_error(ErrorKind::usage, "620 frames", [&] { kept.read(619, 2); });
  expect_error(ErrorKind::usage, "620 frames", [&] { kept.read(-1, 2); });
}

TEST(Mp4, CutFilesHaveNoIndex) {
  const std::string good = write_mp4(smooth_frames(40, 32, 32, 1), of_size(32, 32, 1));
  for (const size_t length : {good.size() / 4, good.size() / 2, good.size() * 3 / 4}) {
    const std::string bytes = good.substr(0, length);
    EXPECT_THROW(index_video(memory_source("memory", as_bytes(bytes))), FormatError) << length;
  }
}

// A decoder for viewers would fill the gap with what is near by.
TEST(Mp4, DamagedFramesAreNotConcealed) {
  std::vector<Frame> frames;
  for (uint32_t t = 0; t < 6; ++t) frames.push_back(noise_frame(128 * 128, t));
  const std::string good = write_mp4(frames, of_size(128, 128, 1));
  ASSERT_GT(good.size(), 40000u);
  for (size_t at = good.size() / 4; at + 3000 < good.size(); at += good.size() / 12) {
    std::string bad = good;
    bad.replace(at, 400, std::string(400, '\xff'));
    EXPECT_THROW(decode(bad), FormatError) << "at byte " << at << " of " << good.size();
  }
}

}  // namespace
}  // namespace convssm::io
