#include "convssm/io/gif.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "malformed.h"
#include "samples.h"
#include "videos.h"
#include "zip_parts.h"

namespace convssm::io {
namespace {

std::string write_gif(const std::vector<Frame>& frames, const VideoFormat& format) {
  const ScratchFolder folder;
  GifWriter writer(folder.path("a.gif"), format);
  for (const Frame& frame : frames) writer.write(frame);
  writer.close();
  return read_text(folder.path("a.gif"));
}

Array decode(const std::string& bytes) { return read_gif(memory_source("memory", as_bytes(bytes))); }

void read_all(const std::shared_ptr<const Source>& source) { read_gif(source); }

// Files by hand. The palette has 128 colours and LZW begins with 8-bit codes, which stay 8 bits wide if the table is
// cleared often enough: a byte is a pixel.
std::string lzw(const std::string& pixels) {
  std::string codes, blocks = "\x07";
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (i % 100 == 0) codes += '\x80';
    codes += pixels[i];
  }
  codes += '\x81';
  for (size_t i = 0; i < codes.size(); i += 255) {
    const std::string block = codes.substr(i, 255);
    blocks += static_cast<char>(block.size()) + block;
  }
  return blocks + '\0';
}

std::string head(int width, int height, bool palette = true) {
  std::string out = "GIF89a" + number(static_cast<uint64_t>(width), 2) + number(static_cast<uint64_t>(height), 2);
  out += {static_cast<char>(palette ? 0xe6 : 0x66), 0, 0};
  for (int i = 0; palette && i < 128; ++i) out += std::string(3, static_cast<char>(2 * i));
  return out;
}

std::string control(int disposal, int transparent = -1) {
  const char flags = static_cast<char>(disposal << 2 | (transparent >= 0));
  return std::string("\x21\xf9\x04") + flags + number(5, 2) + static_cast<char>(std::max(transparent, 0)) + '\0';
}

std::string image(int left, int top, int width, int height, const std::string& pixels, int flags = 0,
                  const std::string& palette = "") {
  std::string out = ",";
  for (const int value : {left, top, width, height}) out += number(static_cast<uint64_t>(value), 2);
  return out + static_cast<char>(flags) + palette + lzw(pixels);
}

// The frames as rows of numbers; a pixel is half of its grey value.
std::vector<std::string> shown(const Array& array) {
  std::vector<std::string> frames;
  const size_t size = array.element_count() / static_cast<size_t>(array.shape()[0]);
  for (size_t i = 0; i < array.element_count(); ++i) {
    if (i % size == 0) frames.emplace_back();
    frames.back() += static_cast<char>('0' + array.values<uint8_t>()[i] / 2);
  }
  return frames;
}

TEST(Gif, InMemoryItIsTheSameFile) {
  const VideoFormat format{.width = 5, .height = 4, .channels = 1};
  const std::vector<Frame> frames{Frame(20, 7), Frame(20, 200)};
  std::string bytes;
  GifWriter writer(&bytes, format);
  for (const Frame& frame : frames) writer.write(frame);
  writer.close();
  EXPECT_EQ(bytes, write_gif(frames, format));
}

TEST(Gif, GreyFramesAreExact) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {64, 48}, {300, 2}}) {
    std::vector<Frame> frames;
    for (int t = 0; t < 5; ++t) frames.push_back(noise_frame(width * height, static_cast<uint32_t>(t)));
    expect_equal(decode(write_gif(frames, of_size(width, height, 1))), stack(frames, height, width, 1));
  }
}

TEST(Gif, FewColoursAreExact) {
  std::vector<Frame> frames;
  for (const uint32_t colours : {1u, 2u, 3u, 255u, 256u}) {
    frames.emplace_back();
    for (uint32_t i = 0; i < 20 * 30; ++i) {
      const uint32_t colour = i % colours;
      for (const uint32_t factor : {7u, 11u, 1u}) frames.back().push_back(static_cast<uint8_t>(colour * factor + 5));
    }
  }
  expect_equal(decode(write_gif(frames, of_size(20, 30, 3))), stack(frames, 30, 20, 3));
}

TEST(Gif, ManyColoursAreClose) {
  const Frame smooth = smooth_frame(120, 90, 3, 4);
  EXPECT_GT(psnr(decode(write_gif({smooth}, of_size(120, 90, 3))).values<uint8_t>(), smooth), 36);
  const Frame noise = noise_frame(64 * 64 * 3, 1);
  EXPECT_GT(psnr(decode(write_gif({noise}, of_size(64, 64, 3))).values<uint8_t>(), noise), 19);
}

TEST(Gif, GreyRgbFramesComeBackAsGrey) {
  const Frame frame = {1, 1, 1, 9, 9, 9};
  expect_equal(decode(write_gif({frame}, of_size(2, 1, 3))), make_array<uint8_t>({1, 1, 2, 1}, {1, 9}));
}

TEST(Gif, Scales) {
  for (const int64_t channels : {1, 3}) {
    const Frame frame = noise_frame(5 * 4 * channels, 3);
    expect_equal(decode(write_gif({frame}, of_size(5, 4, channels, 10, 3))),
                 stack({enlarged(frame, 5, 4, channels, 3)}, 12, 15, channels));
  }
}

std::vector<int> delays(const std::string& bytes) {
  std::vector<int> found;
  for (size_t at = 0; (at = bytes.find("\x21\xf9\x04", at)) != std::string::npos; ++at) {
    found.push_back(static_cast<uint8_t>(bytes[at + 4]) + 256 * static_cast<uint8_t>(bytes[at + 5]));
  }
  return found;
}

TEST(Gif, TimeAndLoop) {
  const std::vector<Frame> frames(6, Frame{1});
  const auto at = [&](double fps) { return delays(write_gif(frames, of_size(1, 1, 1, fps))); };
  EXPECT_EQ(at(10), std::vector(6, 10));
  EXPECT_EQ(at(24), (std::vector{4, 4, 5, 4, 4, 4}));
  EXPECT_EQ(at(0.5), std::vector(6, 200));
  EXPECT_EQ(at(100), std::vector(6, 2));
  EXPECT_NE(write_gif(frames, of_size(1, 1, 1)).find(std::string("NETSCAPE2.0\x03\x01\x00\x00", 15)),
            std::string::npos);
  const ScratchFolder folder;
  GifWriter once(folder.path("a.gif"), of_size(1, 1, 1), false);
  once.write(frames[0]);
  once.close();
  EXPECT_EQ(read_text(folder.path("a.gif")).find("NETSCAPE"), std::string::npos);
}

TEST(Gif, AppearsWholeOrNotAtAll) {
  const ScratchFolder folder;
  {
    GifWriter writer(folder.path("a.gif"), of_size(2, 2, 1));
    writer.write(Frame(4));
    EXPECT_FALSE(std::filesystem::exists(folder.path("a.gif")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  GifWriter writer(folder.path("a.gif"), of_size(2, 2, 1));
  expect_error(ErrorKind::usage, "has 4 bytes, got 5", [&] { writer.write(Frame(5)); });
  writer.write(Frame(4));
  writer.close();
  EXPECT_TRUE(std::filesystem::exists(folder.path("a.gif")));
  expect_error(ErrorKind::usage, "after close()", [&] { writer.write(Frame(4)); });
  expect_error(ErrorKind::usage, "after close()", [&] { writer.close(); });
}

TEST(Gif, RefusesToWrite) {
  const ScratchFolder folder;
  const auto refused = [&](const VideoFormat& format, const std::string& reason) {
    expect_error(ErrorKind::usage, reason, [&] { GifWriter(folder.path("a.gif"), format); });
  };
  refused(of_size(2, 2, 4), "1 (grey) or 3 (RGB) channels, got 4; write .npy");
  refused(of_size(0, 2, 1), "must be 1 to 65535 pixels");
  refused(of_size(2, 70000, 1), "must be 1 to 65535 pixels");
  refused(of_size(2, 40000, 1, 10, 2), "40000 x 2 times 2");
  refused(of_size(2, 2, 1, 10, 0), "scale must be");
  refused(of_size(2, 2, 1, 0), "fps must be");
  refused(of_size(2, 2, 1, NAN), "fps must be");
  expect_error(ErrorKind::usage, "at least one frame",
               [&] { GifWriter(folder.path("a.gif"), of_size(2, 2, 1)).close(); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expect_error(ErrorKind::io, "cannot create", [] { GifWriter("/nowhere/a.gif", of_size(2, 2, 1)); });
}

TEST(Gif, OffsetsTransparencyAndDisposal) {
  using namespace std::string_literals;
  const std::string base = image(0, 0, 2, 2, "\1\2\3\4");
  const auto frames = [&](const std::string& first_control, const std::string& more) {
    return shown(decode(head(2, 2) + first_control + base + more + ";"));
  };
  using Shown = std::vector<std::string>;
  EXPECT_EQ(frames("", image(1, 0, 1, 2, "\7\10")), (Shown{"1234", "1738"}));
  EXPECT_EQ(frames(control(1), control(1, 7) + image(0, 1, 2, 1, "\7\5")), (Shown{"1234", "1235"}));
  EXPECT_EQ(frames(control(2), image(1, 1, 1, 1, "\5")), (Shown{"1234", "0005"}));
  EXPECT_EQ(frames("", control(3) + image(0, 0, 1, 2, "\5\6") + image(1, 0, 1, 1, "\7")),
            (Shown{"1234", "5264", "1734"}));
  EXPECT_EQ(frames("", control(2) + image(0, 0, 1, 1, "\5") + image(1, 1, 1, 1, "\6")),
            (Shown{"1234", "5234", "0236"}));
  EXPECT_EQ(shown(decode(head(3, 1) + image(1, 0, 1, 1, "\5") + ";")), (Shown{"050"}));  // the rest is never drawn
}

TEST(Gif, InterlacedRows) {
  const std::string rows = "\1\2\3\4\5\6\7\10\11";  // rows 0 8 4 2 6 1 3 5 7
  EXPECT_EQ(shown(decode(head(1, 9) + image(0, 0, 1, 9, rows, 0x40) + ";")), std::vector<std::string>{"164738592"});
}

TEST(Gif, PalettesOfFrames) {
  using namespace std::string_literals;
  const std::string grey = "\5\5\5\6\6\6", red = "\xff\0\0\6\6\6"s;
  const auto with = [&](const std::string& palette) {
    return decode(head(2, 1, false) + image(0, 0, 2, 1, "\1\0"s, 0x80, palette) + ";");
  };
  expect_equal(with(grey), make_array<uint8_t>({1, 1, 2, 1}, {6, 5}));
  expect_equal(with(red), make_array<uint8_t>({1, 1, 2, 3}, {6, 6, 6, 255, 0, 0}));
  EXPECT_EQ(shown(decode(head(1, 1) + "\x21\xfe\x02hi\0"s + image(0, 0, 1, 1, "\3") + ";")),
            std::vector<std::string>{"3"});  // a comment
}

TEST(Gif, PiecesAreRefused) {
  expect_prefixes_refused(write_gif({noise_frame(30, 1), noise_frame(30, 2)}, of_size(6, 5, 1)), read_all);
  expect_prefixes_refused(write_gif({smooth_frame(20, 20, 3, 0)}, of_size(20, 20, 3)), read_all);
}

TEST(Gif, DamageIsSurvived) {
  expect_damage_survived(head(2, 2) + control(3, 1) + image(0, 0, 2, 2, "\1\2\3\4") + ";", read_all);
  expect_damage_survived(write_gif({noise_frame(12, 1), noise_frame(12, 2)}, of_size(2, 2, 3)), read_all);
}

TEST(Gif, MalformedFiles) {
  using namespace std::string_literals;
  const std::string pixel = image(0, 0, 1, 1, "\1");
  for (const Malformed& file : {
           Malformed{"empty file", "", "not a valid GIF file"},
           Malformed{"another format", "\x89PNG\r\n\x1a\n.................", "not a valid GIF file"},
           Malformed{"no frame", head(2, 2) + ";", "without any frame"},
           Malformed{"no palette", head(2, 2, false) + pixel + ";", "a frame has no palette"},
           Malformed{"frame outside", head(2, 2) + image(2, 0, 1, 1, "\1") + ";", "leaves the picture of 2 x 2"},
           Malformed{"frame too large", head(2, 2) + image(0, 0, 2, 3, "\1\1\1\1\1\1") + ";", "leaves the picture"},
           Malformed{"frame of width 0", head(2, 2) + image(0, 0, 0, 1, "") + ";", "a frame is 1 x 0 pixels"},
           Malformed{"picture of width 0", head(0, 2) + pixel + ";", "leaves the picture of 2 x 0"},
           Malformed{"too few pixels", head(2, 2) + image(0, 0, 2, 2, "\1\1") + ";", "not a valid GIF file"},
           Malformed{"short control", head(1, 1) + "\x21\xf9\x01\0\0"s + pixel + ";", "has 1 bytes, not 4"},
           Malformed{"unknown block", head(1, 1) + "?" + pixel, "not a valid GIF file"},
           Malformed{"index beyond the palette", head(1, 1, false) + image(0, 0, 1, 1, "\2", 0x80, "abcdef") + ";",
                     "colour 2 of a palette of 2"},
           Malformed{"huge picture", head(65535, 65535) + pixel + ";", "--file-memory"},
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Gif, ManyFramesOnALargePictureAreRefused) {
  std::string bytes = head(4000, 4000);
  for (int i = 0; i < 1000; ++i) bytes += image(0, 0, 1, 1, "\1");
  expect_refused({"many frames", bytes + ";", "14.9 GiB of memory"}, read_all);
}

}  // namespace
}  // namespace convssm::io
