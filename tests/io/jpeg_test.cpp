// JPEG pictures against what Pillow makes of the same files (data/make_episode_data.py).
#include "convssm/io/jpeg.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/animation.h"
#include "convssm/io/npy.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

TEST(Jpeg, EqualsPillow) {
  for (const auto& [name, channels] : {std::pair<std::string, int64_t>{"rgb", 3}, {"grey", 1}}) {
    const Image image = read_jpeg(data_path(name + ".jpg"));
    const Array want = read_npy(data_path(name + "_jpg.npy"));
    ASSERT_EQ(image.height, 20);
    ASSERT_EQ(image.width, 28);
    ASSERT_EQ(image.channels, channels);
    int worst = 0;
    double sum = 0;
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      const int difference = std::abs(image.pixels[i] - want.values<uint8_t>()[i]);
      worst = std::max(worst, difference), sum += difference;
    }
    // Of colour, half of the samples are between those that are stored; programs fill them in differently.
    EXPECT_LE(worst, channels == 1 ? 1 : 12) << name;
    EXPECT_LT(sum / static_cast<double>(image.pixels.size()), channels == 1 ? 0.1 : 2.5) << name;
  }
  EXPECT_EQ(read_animation(data_path("rgb.jpg")).shape(), (std::vector<int64_t>{1, 20, 28, 3}));
}

// Cameras put a small picture before the large one.
TEST(Jpeg, TheEndOfASmallPictureInsideIsNotTheEnd) {
  const std::string good = read_text(data_path("grey.jpg"));
  const std::string inside = std::string("\xff\xe1\x00\x08", 4) + "\xff\xd8\x01\x02\xff\xd9";
  const std::string with = good.substr(0, 2) + inside + good.substr(2);
  const auto decode = [](const std::string& bytes) { return read_jpeg(memory_source("memory", as_bytes(bytes))); };
  EXPECT_EQ(decode(with).pixels, decode(good).pixels);
  for (const size_t cut : {3, 20, 60}) {
    EXPECT_THROW(decode(with.substr(0, with.size() - cut)), FormatError) << cut;
  }
}

TEST(Jpeg, DamagedPicturesAreRefusedOrRead) {
  const std::string good = read_text(data_path("grey.jpg"));
  const auto decode = [](const std::string& bytes) { read_jpeg(memory_source("memory", as_bytes(bytes))); };
  for (size_t length = 0; length + 2 <= good.size(); ++length) {
    EXPECT_THROW(decode(good.substr(0, length)), FormatError) << length;
  }
  std::string bad = good;
  for (size_t i = 0; i < bad.size(); ++i) {
    bad[i] = static_cast<char>(good[i] ^ 0x55);
    try {
      decode(bad);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    }
    bad[i] = good[i];
  }
  EXPECT_THROW(decode("\xff\xd8\xff\xd9"), FormatError);
  EXPECT_THROW(decode("GIF89a"), FormatError);
  expect_error(ErrorKind::io, "No such file", [] { read_jpeg("/nowhere/a.jpg"); });
  set_file_memory_limit(100);
  expect_error(ErrorKind::data, "--file-memory", [&] { decode(good); });
  set_file_memory_limit(default_file_memory);
}

}  // namespace
}  // namespace convssm::io
