// Videos of all containers, made by ffmpeg and compared with what it decodes them to, byte by byte: the same conversion of
// colours is asked of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "../base/scratch_folder.h"
#include "convssm/io/video_read.h"
#include "malformed.h"
#include "videos.h"

namespace convssm::io {
namespace {

bool has_ffmpeg() {
  static const bool there = std::system("ffmpeg -version >/dev/null 2>&1") == 0;
  return there;
}

class Videos : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_ffmpeg()) GTEST_SKIP() << "there is no ffmpeg (Debian package ffmpeg) to compare with";
  }

  bool ffmpeg(const std::string& arguments) {
    const std::string command = "cd '" + folder.path() + "' && ffmpeg -nostdin -v error -y " + arguments + " 2>log";
    const bool done = std::system(command.c_str()) == 0;
    if (!done) ADD_FAILURE() << arguments << "\n" << read_text(folder.path("log"));
    return done;
  }

  // A moving picture, coded as the options say.
  void make(const std::string& name, const std::string& options,
            const std::string& input = "testsrc2=s=64x48:r=25:d=2") {
    ffmpeg("-f lavfi -i " + input + " -bitexact " + options + " " + name);
  }

  // What ffmpeg decodes, each frame that is stored once.
  Frame decoded(const std::string& name, int64_t channels, const std::string& track) {
    ffmpeg("-i " + name + " -map " + track + " -vsync passthrough -f rawvideo -pix_fmt " +
           (channels == 1 ? "gray" : "rgb24") + " -sws_flags bicubic+accurate_rnd+full_chroma_int+full_chroma_inp raw");
    const std::string raw = read_text(folder.path("raw"));
    return {raw.begin(), raw.end()};
  }

  enum class Index { there, none };

  void expect_as_ffmpeg(const std::string& name, Index index, int64_t channels = 3,
                        const std::string& track = "0:v:0") {
    constexpr int64_t height = 48, width = 64;
    SCOPED_TRACE(name);
    const Array all = read_video(folder.path(name));
    const Frame wanted = decoded(name, channels, track);
    const int64_t frame = height * width * channels;
    ASSERT_EQ(all.shape(), (std::vector<int64_t>{std::ssize(wanted) / frame, height, width, channels}));
    EXPECT_TRUE(std::ranges::equal(all.values<uint8_t>(), wanted)) << "psnr " << psnr(all.values<uint8_t>(), wanted);
    expect_windows(name, all, index);
  }

  // Any frames, one window after the other and each alone, are those of the whole.
  void expect_windows(const std::string& name, const Array& all, Index wanted) {
    const auto source = open_source(folder.path(name));
    const auto index = index_video(source);
    ASSERT_EQ(index.has_value(), wanted == Index::there);
    if (!index) return;
    const int64_t frames = all.shape()[0];
    ASSERT_EQ(index->frames(), frames);
    const size_t frame = all.byte_count() / static_cast<size_t>(frames);
    VideoFrames kept(source, *index);
    std::mt19937 random(7);
    for (int k = 0; k < 12; ++k) {
      const int64_t first = static_cast<int64_t>(random()) % frames;
      const int64_t count = 1 + static_cast<int64_t>(random()) % std::min<int64_t>(5, frames - first);
      const auto want = all.bytes().subspan(static_cast<size_t>(first) * frame, static_cast<size_t>(count) * frame);
      EXPECT_TRUE(std::ranges::equal(kept.read(first, count).bytes(), want)) << first;
      EXPECT_TRUE(std::ranges::equal(VideoFrames(source, *index).read(first, count).bytes(), want)) << first;
    }
  }

  ScratchFolder folder;
};

const std::string h264 = "-c:v libx264 -g 12 ";

TEST_F(Videos, EveryContainer) {
  for (const char* name : {"a.mp4", "a.mov", "a.mkv", "a.m4v"}) {
    make(name, h264 + "-bf 2 -pix_fmt yuv420p");
    expect_as_ffmpeg(name, Index::there);
  }
  make("b.webm", "-c:v libvpx-vp9 -g 12 -b:v 200k");
  expect_as_ffmpeg("b.webm", Index::there);
  make("c.avi", "-c:v mjpeg -q:v 3 -pix_fmt yuvj420p");
  expect_as_ffmpeg("c.avi", Index::there);
  make("d.avi", "-c:v mpeg4 -g 12 -q:v 3");
  expect_as_ffmpeg("d.avi", Index::there);
  make("e.avi", "-c:v rawvideo -pix_fmt bgr24");
  expect_as_ffmpeg("e.avi", Index::there);
}

// Frames that only others refer to, in packets of their own.
TEST_F(Videos, HiddenFrames) {
  make("a.webm", "-c:v libvpx -g 20 -b:v 100k -auto-alt-ref 1 -lag-in-frames 16", "testsrc2=s=64x48:r=25:d=4");
  expect_as_ffmpeg("a.webm", Index::there);
  make("b.mkv", "-c:v libvpx-vp9 -g 20 -b:v 100k -auto-alt-ref 1 -lag-in-frames 16", "testsrc2=s=64x48:r=25:d=4");
  expect_as_ffmpeg("b.mkv", Index::there);
}

// AVI has no place for the times at which frames are shown.
TEST_F(Videos, WithoutTimes) {
  make("a.avi", h264 + "-bf 2 -pix_fmt yuv420p");
  expect_as_ffmpeg("a.avi", Index::none);
  make("b.avi", "-c:v mpeg4 -bf 2 -g 12 -q:v 3");
  expect_as_ffmpeg("b.avi", Index::none);
}

TEST_F(Videos, GreyLosslessAndDeep) {
  make("a.mkv", "-c:v ffv1 -pix_fmt gray");
  expect_as_ffmpeg("a.mkv", Index::there, 1);
  make("a.avi", "-c:v ffv1 -pix_fmt gray");
  expect_as_ffmpeg("a.avi", Index::there, 1);
  make("b.mkv", "-c:v ffv1 -pix_fmt gray16le");
  expect_as_ffmpeg("b.mkv", Index::there, 1);
  make("c.mkv", "-c:v ffv1 -pix_fmt bgr0");
  expect_as_ffmpeg("c.mkv", Index::there);
  make("d.mp4", h264 + "-pix_fmt yuv420p10le");
  expect_as_ffmpeg("d.mp4", Index::there);
  make("e.mp4", h264 + "-pix_fmt yuv444p");
  expect_as_ffmpeg("e.mp4", Index::there);
  make("f.mkv", h264 + "-pix_fmt yuv444p10le -qp 0");
  expect_as_ffmpeg("f.mkv", Index::there);
  make("g.mp4", h264 + "-pix_fmt gray");
  expect_as_ffmpeg("g.mp4", Index::there);  // as libav decodes it: with colours that are grey
  make("h.mp4", h264 + "-pix_fmt yuv420p -colorspace bt709 -color_range pc");
  expect_as_ffmpeg("h.mp4", Index::there);
  make("i.mkv", "-c:v ffv1 -pix_fmt yuva420p");
  expect_as_ffmpeg("i.mkv", Index::there);
  make("j.mov", "-c:v qtrle -pix_fmt rgb24");
  expect_as_ffmpeg("j.mov", Index::there);
  make("k.mov", "-c:v prores_ks -pix_fmt yuv422p10le");
  expect_as_ffmpeg("k.mov", Index::there);
}

// A grey frame is the same bytes that were written.
TEST_F(Videos, LosslessGreyIsExact) {
  std::string raw;
  for (uint32_t t = 0; t < 5; ++t) {
    for (const uint8_t byte : noise_frame(20 * 14, t)) raw += static_cast<char>(byte);
  }
  folder.write("in.raw", raw);
  for (const std::string name : {"a.mkv", "a.avi"}) {
    ffmpeg("-f rawvideo -pix_fmt gray -s 20x14 -i in.raw -c:v ffv1 " + name);
    const Array all = read_video(folder.path(name));
    ASSERT_EQ(all.shape(), (std::vector<int64_t>{5, 14, 20, 1}));
    EXPECT_TRUE(std::ranges::equal(all.bytes(), as_bytes(raw)));
  }
}

TEST_F(Videos, InterlacedOnesStayWoven) {
  make("a.mp4", h264 + "-bf 2 -flags +ildct+ilme -x264opts tff=1 -pix_fmt yuv420p");
  expect_as_ffmpeg("a.mp4", Index::there);
  make("b.avi", "-c:v mpeg4 -flags +ildct+ilme -g 12 -q:v 3");
  expect_as_ffmpeg("b.avi", Index::there);
  make("c.mkv", "-c:v mpeg2video -bf 2 -flags +ildct+ilme -g 12 -q:v 3");
  expect_as_ffmpeg("c.mkv", Index::there);
}

TEST_F(Videos, VariableRates) {
  for (const char* name : {"a.mp4", "a.mkv"}) {
    make(name, "-vf \"select='not(mod(n,3))+not(mod(n,7))'\" -vsync vfr " + h264 + "-bf 2 -pix_fmt yuv420p");
    expect_as_ffmpeg(name, Index::there);
  }
}

TEST_F(Videos, EditListsAndNegativeStarts) {
  make("a.mp4", h264 + "-bf 3 -pix_fmt yuv420p -output_ts_offset 1.5");
  expect_as_ffmpeg("a.mp4", Index::there);
  ffmpeg("-ss 0.6 -i a.mp4 -c copy b.mp4");  // begins before what is shown
  expect_as_ffmpeg("b.mp4", Index::none);
  ffmpeg("-ss 0.6 -i a.mp4 -c copy c.mkv");
  expect_as_ffmpeg("c.mkv", Index::there);
  make("d.mp4", h264 + "-bf 3 -pix_fmt yuv420p -avoid_negative_ts disabled -movflags +negative_cts_offsets");
  expect_as_ffmpeg("d.mp4", Index::there);
  make("e.mp4", h264 + "-bf 3 -pix_fmt yuv420p -movflags +frag_keyframe+empty_moov");
  expect_as_ffmpeg("e.mp4", Index::there);
}

// ffmpeg turns frames before their colours are converted, so that neighbours of a pixel differ where the colours are coarser.
TEST_F(Videos, TurnedOnesStandUpright) {
  make("a.mp4", h264 + "-pix_fmt yuv420p");
  const Array lying = read_video(folder.path("a.mp4"));
  for (const int degrees : {90, 180, 270}) {
    SCOPED_TRACE(degrees);
    const std::string name = "turned" + std::to_string(degrees) + ".mp4";
    ffmpeg("-i a.mp4 -c copy -metadata:s:v rotate=" + std::to_string(degrees) + " " + name);
    const int64_t H = degrees == 180 ? 48 : 64, W = degrees == 180 ? 64 : 48;
    const Array all = read_video(folder.path(name));
    ASSERT_EQ(all.shape(), (std::vector<int64_t>{50, H, W, 3}));
    EXPECT_GT(psnr(all.values<uint8_t>(), decoded(name, 3, "0:v:0")), 50);
    for (int64_t t = 0; t < 50; t += 7) {
      for (int64_t y = 0; y < H; ++y) {
        for (int64_t x = 0; x < W; ++x) {
          const auto [row, column] = degrees == 180   ? std::pair(47 - y, 63 - x)
                                     : degrees == 270 ? std::pair(47 - x, y)  // clockwise
                                                      : std::pair(x, 63 - y);
          for (int64_t c = 0; c < 3; ++c) {
            ASSERT_EQ(all.values<uint8_t>()[static_cast<size_t>(((t * H + y) * W + x) * 3 + c)],
                      lying.values<uint8_t>()[static_cast<size_t>(((t * 48 + row) * 64 + column) * 3 + c)]);
          }
        }
      }
    }
    expect_windows(name, all, Index::there);
  }
}

TEST_F(Videos, SoundAndSeveralTracks) {
  make("sound.mkv", "-f lavfi -i sine=d=2 -map 0 -map 1 " + h264 + "-pix_fmt yuv420p -c:a flac");
  expect_as_ffmpeg("sound.mkv", Index::there);
  make("sound.avi", "-f lavfi -i sine=d=2 -map 1 -map 0 -c:v mpeg4 -g 12 -c:a pcm_s16le");
  expect_as_ffmpeg("sound.avi", Index::there);
  make("two.mkv", "-f lavfi -i testsrc=s=96x80:r=25:d=1 -map 0 -map 1 " + h264 +
                      "-pix_fmt yuv420p -disposition:v:0 default -disposition:v:1 0");
  expect_as_ffmpeg("two.mkv", Index::there);
  make("second.mp4", "-f lavfi -i testsrc=s=96x80:r=25:d=1 -map 1 -map 0 " + h264 +
                         "-pix_fmt yuv420p -disposition:v:0 0 -disposition:v:1 default");
  expect_as_ffmpeg("second.mp4", Index::there, 3, "0:v:1");
}

TEST_F(Videos, AttachedPicturesAreNoVideos) {
  ffmpeg("-f lavfi -i testsrc=s=96x80:r=1:d=1 -frames:v 1 cover.jpg");
  make("a.mp4",
       "-i cover.jpg -map 1 -map 0 -c:v:0 mjpeg -c:v:1 libx264 -pix_fmt:v:1 yuv420p -disposition:v:0 attached_pic");
  expect_as_ffmpeg("a.mp4", Index::there);
  make("b.mkv", h264 + "-attach cover.jpg -metadata:s:t mimetype=image/jpeg -pix_fmt yuv420p");
  expect_as_ffmpeg("b.mkv", Index::there);
  ffmpeg("-f lavfi -i sine=d=1 -i cover.jpg -map 0 -map 1 -c:a aac -c:v copy -disposition:v:0 attached_pic sound.mp4");
  expect_error(ErrorKind::data, "file without a video", [&] { read_video(folder.path("sound.mp4")); });
}

// Nothing says where a key frame is: frames are decoded from the first one on.
TEST_F(Videos, WithoutCues) {
  ffmpeg("-f lavfi -i testsrc2=s=64x48:r=25:d=2 " + h264 + "-pix_fmt yuv420p -f matroska - | cat > a.mkv");
  expect_as_ffmpeg("a.mkv", Index::there);
  ffmpeg("-f lavfi -i testsrc2=s=64x48:r=25:d=2 -c:v mpeg4 -g 12 -f avi - | cat > a.avi");
  expect_as_ffmpeg("a.avi", Index::there);
}

TEST_F(Videos, CutAndDamagedFilesAreRefusedOrRead) {
  make("a.mkv", "-c:v mpeg4 -g 4", "testsrc2=s=32x32:r=25:d=0.4");
  make("a.webm", "-c:v libvpx -g 4", "testsrc2=s=32x32:r=25:d=0.4");
  make("a.avi", "-c:v mpeg4 -g 4", "testsrc2=s=32x32:r=25:d=0.4");
  make("a.mov", "-c:v mpeg4 -g 4", "testsrc2=s=32x32:r=25:d=0.4");
  for (const char* name : {"a.mkv", "a.webm", "a.avi", "a.mov"}) {
    SCOPED_TRACE(name);
    const std::string good = read_text(folder.path(name));
    const auto read_all = [](const std::string& bytes) {
      const auto source = memory_source("bad.file", as_bytes(bytes));
      read_video(source);
      if (const auto index = index_video(source)) VideoFrames(source, *index).read(index->frames() - 1, 1);
    };
    read_all(good);
    for (size_t length = 0; length < good.size(); length += length < 700 ? 1 : 97) {
      EXPECT_THROW(read_all(good.substr(0, length)), FormatError) << length;
    }
    std::string bad = good;
    for (size_t i = 0; i < good.size(); i += i < 3000 ? 1 : 31) {
      bad[i] = static_cast<char>(good[i] ^ 0x55);
      try {
        read_all(bad);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      }
      bad[i] = good[i];
    }
  }
}

TEST(VideoFiles, OthersAreRefused) {
  const std::string list = "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n";
  for (const std::string& bytes : {std::string(), std::string("GIF89a"), list, std::string("FLV\x01")}) {
    expect_error(ErrorKind::data, "not a video of MP4, QuickTime, AVI, Matroska or WebM",
                 [&] { read_video(memory_source("bad.file", as_bytes(bytes))); });
  }
  expect_error(ErrorKind::io, "No such file", [] { read_video("/nowhere/a.avi"); });
}

}  // namespace
}  // namespace convssm::io
