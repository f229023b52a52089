#include "convssm/io/pnm.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/io/animation.h"
#include "malformed.h"

namespace convssm::io {
namespace {

using namespace std::string_literals;

Array decode_pnm(const std::string& bytes) { return read_pnm(memory_source("memory", as_bytes(bytes))); }
void read_all_pnm(const std::shared_ptr<const Source>& source) { read_pnm(source); }

template <typename T>
void expect_pnm(const std::string& bytes, const std::vector<int64_t>& shape, const std::vector<T>& values) {
  const Array found = decode_pnm(bytes);
  EXPECT_EQ(found.shape(), shape) << bytes;
  EXPECT_TRUE(std::ranges::equal(found.values<T>(), values)) << bytes;
  const ArrayInfo info = read_pnm_info(memory_source("memory", as_bytes(bytes)));
  EXPECT_EQ(info.shape, shape);
  EXPECT_EQ(info.dtype, found.dtype());
}

TEST(Pnm, GreyAndRgbAsBytesAndText) {
  expect_pnm<uint8_t>("P5 3 2 255\nabcdef", {1, 2, 3, 1}, {'a', 'b', 'c', 'd', 'e', 'f'});
  expect_pnm<uint8_t>("P6\n# made by hand\n2 1\n255\nabcdef", {1, 1, 2, 3}, {'a', 'b', 'c', 'd', 'e', 'f'});
  expect_pnm<uint8_t>("P2 3 2 255 0 1 2\n10\t20\r\n 255", {1, 2, 3, 1}, {0, 1, 2, 10, 20, 255});
  expect_pnm<uint8_t>("P3 1 1 255\n1 #one\n2 3\n", {1, 1, 1, 3}, {1, 2, 3});
  expect_pnm<uint8_t>("P5 2 1 255\n\n ", {1, 1, 2, 1}, {'\n', ' '});  // one blank alone ends the header
}

TEST(Pnm, TheLargestValue) {
  expect_pnm<uint8_t>("P2 4 1 3 0 1 2 3", {1, 1, 4, 1}, {0, 85, 170, 255});
  expect_pnm<uint8_t>("P2 2 1 100 50 100", {1, 1, 2, 1}, {128, 255});
  expect_pnm<uint16_t>("P5 2 1 4095\n\x01\x02\x0f\xff"s, {1, 1, 2, 1}, {258, 4095});
  expect_pnm<uint16_t>("P6 1 1 65535\n\0\1\xff\xff\x80\0"s, {1, 1, 1, 3}, {1, 65535, 32768});
  expect_pnm<uint16_t>("P2 2 1 256 256 7", {1, 1, 2, 1}, {256, 7});
}

TEST(Pnm, SeveralPicturesAreFrames) {
  expect_pnm<uint8_t>("P5 2 1 255\nabP5 2 1 255\ncdP5 2 1 255\nef\n", {3, 1, 2, 1}, {'a', 'b', 'c', 'd', 'e', 'f'});
  const ScratchFolder folder;
  folder.write("a.pgm", "P5 2 1 255\nabP5 2 1 255\ncd");
  EXPECT_EQ(count_pictures(folder.path("a.pgm")), 2);
  EXPECT_EQ(read_animation(folder.path("a.pgm")).shape(), (std::vector<int64_t>{2, 1, 2, 1}));
}

TEST(Pnm, PiecesAreRefused) {
  expect_prefixes_refused("P5 3 2 255\nabcdef", read_all_pnm);
  expect_prefixes_refused("P6 1 2 65535\nabcdefabcdef", read_all_pnm);
  const std::string text = "P2 3 1 255 1 2 3";
  for (size_t length = 0; length < text.size(); ++length) EXPECT_THROW(decode_pnm(text.substr(0, length)), FormatError);
}

TEST(Pnm, DamageIsSurvived) {
  for (const char* bytes : {"P5 3 2 255\nabcdef", "P3 1 1 255\n1 #one\n2 3\n", "P5 1 1 9\naP5 1 1 9\nb"}) {
    for (size_t i = 0; i < 12; ++i) expect_damage_survived(bytes, [](const auto& source) { read_pnm_info(source); });
    std::string bad = bytes;
    for (size_t i = 0; i < bad.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        bad[i] = static_cast<char>(value);
        try {
          decode_pnm(bad);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
        }
      }
      bad[i] = bytes[i];
    }
  }
}

TEST(Pnm, MalformedPictures) {
  for (const Malformed& file : {
           Malformed{"empty file", "", "expected a PNM picture"},
           Malformed{"a bitmap", "P4 1 1\n\1", "expected a PNM picture, P2, P3, P5 or P6"},
           Malformed{"no size", "P5 ", "expected the width"},
           Malformed{"negative", "P5 -1 2 255\n", "expected the width"},
           Malformed{"no height", "P5 3 x", "expected the height"},
           Malformed{"no largest", "P5 3 2\n", "expected the largest value"},
           Malformed{"no pixels wide", "P5 0 2 255\n", "sides must be 1 to 32768"},
           Malformed{"too wide", "P5 99999999999999999999 2 255\n", "sides must be 1 to 32768"},
           Malformed{"largest 0", "P5 1 1 0\na", "must be 1 to 65535"},
           Malformed{"largest 65536", "P5 1 1 65536\na", "must be 1 to 65535"},
           Malformed{"no blank", "P5 1 1 255a", "expected a blank"},
           Malformed{"larger than the file", "P6 30000 30000 65535\nab", "the picture is cut short"},
           Malformed{"larger than the text", "P3 30000 30000 65535\n1 2", "the picture is cut short"},
           Malformed{"above the largest", "P5 1 1 50\na", "97 is above the largest, 50"},
           Malformed{"text above the largest", "P2 1 1 255 256", "256 is above the largest, 255"},
           Malformed{"no number", "P2 2 1 255 1 x", "expected a number"},
           Malformed{"too many numbers", "P2 1 1 255 1 2", "something follows"},
           Malformed{"something behind", "P5 1 1 255\nab", "expected a PNM picture"},
           Malformed{"another size", "P5 1 1 255\naP5 1 2 255\nab", "several sizes or types"},
           Malformed{"a remark without an end", "P5 1 1 # ...", "expected the largest value"},
       }) {
    expect_refused(file, read_all_pnm);
  }
}

}  // namespace
}  // namespace convssm::io
