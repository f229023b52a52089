// TIFF files that tifffile wrote, and damaged ones.
#include "convssm/io/tiff.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/animation.h"
#include "convssm/io/npy.h"
#include "malformed.h"

namespace convssm::io {
namespace {

namespace fs = std::filesystem;

const std::string tiff_folder = CONVSSM_SOURCE_DIR "/tests/io/data/tiff/";

void read_all_tiff(const std::shared_ptr<const Source>& source) { read_tiff(source); }

TEST(Tiff, ReadsWhatTifffileWrites) {
  int files = 0;
  ::testing::internal::CaptureStderr();
  for (const auto& entry : fs::directory_iterator(tiff_folder)) {
    if (entry.path().extension() != ".npy") continue;
    SCOPED_TRACE(entry.path().stem());
    const std::string path = fs::path(entry.path()).replace_extension(".tif");
    const Array wanted = read_npy(entry.path()), all = read_tiff(path);
    EXPECT_EQ(all.dtype(), wanted.dtype());
    ASSERT_EQ(all.shape(), wanted.shape());
    EXPECT_TRUE(std::ranges::equal(all.bytes(), wanted.bytes()));
    EXPECT_EQ(read_animation(path).shape(), wanted.shape());
    EXPECT_EQ(count_pictures(path), wanted.shape()[0]);
    ++files;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // libtiff is silent
  EXPECT_GE(files, 25);
}

TEST(Tiff, AnyPages) {
  for (const char* name : {"stack.tif", "stack_big.tif"}) {
    const auto source = open_source(tiff_folder + name);
    const TiffIndex index = index_tiff(source);
    const Array all = read_tiff(source);
    const int64_t frames = index.frames();
    const size_t frame = all.byte_count() / static_cast<size_t>(frames);
    for (int64_t first = frames - 1; first >= 0; --first) {
      for (int64_t count = 1; count <= frames - first; ++count) {
        const auto want = all.bytes().subspan(static_cast<size_t>(first) * frame, static_cast<size_t>(count) * frame);
        EXPECT_TRUE(std::ranges::equal(read_tiff(source, index, first, count).bytes(), want)) << first << " " << count;
      }
    }
    expect_error(ErrorKind::usage, "frames, asked for", [&] { read_tiff(source, index, 1, frames); });
    expect_error(ErrorKind::usage, "frames, asked for", [&] { read_tiff(source, index, -1, 1); });
  }
}

TEST(Tiff, WhatIsNotReadSaysWhy) {
  const auto refused = [](const std::string& name, const std::string& reason) {
    expect_error(ErrorKind::data, reason, [&] { read_tiff(tiff_folder + name); });
  };
  refused("refused_sizes.tif", "page 1 is u8 6x4 with 1 channels, the first u8 6x5 with 1; all must be alike");
  refused("refused_types.tif", "page 1 is u16 6x5");
  refused("refused_palette.tif", "neither grey nor RGB (photometric interpretation 3)");
  refused("refused_complex.tif", "samples of 64 bits and format 6 are not read");
  refused("refused_bits.tif", "samples of 4 bits and format 1 are not read");
  expect_error(ErrorKind::io, "No such file", [] { read_tiff("/nowhere/a.tif"); });
}

TEST(Tiff, FilesLargerThanTheLimit) {
  const uint64_t before = file_memory_limit();
  set_file_memory_limit(900);  // the file has 960 bytes of pixels
  expect_error(ErrorKind::data, "--file-memory", [] { read_tiff(tiff_folder + "stack.tif"); });
  set_file_memory_limit(before);
}

// The last page of some files lies before the directories: their ends alone can be missed.
TEST(Tiff, PiecesAreRefused) {
  for (const char* name : {"stack.tif", "stack_big.tif", "lzw.tif", "tiles.tif", "apart.tif"}) {
    SCOPED_TRACE(name);
    const std::string good = read_text(tiff_folder + name);
    for (size_t length = 0; length < good.size(); length += length < 600 ? 1 : 37) {
      const std::string bytes = good.substr(0, length);
      EXPECT_THROW(read_all_tiff(memory_source("bad.file", as_bytes(bytes))), FormatError) << length;
    }
  }
}

TEST(Tiff, DamageIsSurvived) {
  for (const char* name : {"grey_u1.tif", "stack_big_endian.tif", "white.tif", "alpha.tif", "stack_big.tif"}) {
    expect_damage_survived(read_text(tiff_folder + name), read_all_tiff);
  }
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// A page of `height` x `width` bytes in one strip of `size` bytes at 8, that does not say what 0 is.
std::string one_page(uint32_t height, uint32_t width, uint16_t compression, uint32_t size, uint32_t next = 0) {
  const auto entry = [](uint16_t tag, uint16_t type, uint32_t value) {
    return little(tag, 2) + little(type, 2) + little(1, 4) + little(value, 4);
  };
  const std::string directory = entry(256, 4, width) + entry(257, 4, height) + entry(258, 3, 8) +
                                entry(259, 3, compression) + entry(273, 4, 8) + entry(277, 3, 1) +
                                entry(278, 4, height) + entry(279, 4, size);
  return std::string("II*\0", 4) + little(12, 4) + "abcd" + little(8, 2) + directory + little(next, 4);
}

TEST(Tiff, MalformedFiles) {
  const std::string good = one_page(2, 2, 1, 4);
  EXPECT_EQ(read_tiff(memory_source("good", as_bytes(good))).values<uint8_t>()[3], 'd');
  for (const Malformed& file : {
           Malformed{"empty file", "", "not a valid TIFF file"},
           Malformed{"another format", "GIF89a..........", "not a valid TIFF file"},
           Malformed{"only a header", good.substr(0, 8), "not a valid TIFF file"},
           Malformed{"larger than its data can be", one_page(30000, 30000, 1, 4), "cannot be in a file of"},
           Malformed{"packed larger than can be", one_page(30000, 30000, 8, 4), "cannot be in a file of"},
           Malformed{"no rows", one_page(0, 2, 1, 4), "not a valid TIFF file"},
           Malformed{"2^32 - 1 rows", one_page(UINT32_MAX, 2, 1, 4), "pixels"},
           Malformed{"a strip behind the end", one_page(30, 4, 1, 120), "cannot be in a file of"},
           Malformed{"no such compression", one_page(2, 2, 12345, 4), "cannot unpack its compression, number 12345"},
           Malformed{"no zlib stream", one_page(2, 2, 8, 4), "not a valid TIFF file"},
           Malformed{"directories in a circle", one_page(2, 2, 1, 4, 12), "not a valid TIFF file"},
           Malformed{"a directory behind the end", one_page(2, 2, 1, 4, 5000), "not a valid TIFF file"},
       }) {
    expect_refused(file, read_all_tiff);
  }
}

}  // namespace
}  // namespace convssm::io
