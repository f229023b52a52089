#include "convssm/io/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "malformed.h"
#include "zip_parts.h"

namespace convssm::io {
namespace {

Image counted_image(int64_t width, int64_t height, int64_t channels) {
  Image image{width, height, channels, {}};
  for (int64_t i = 0; i < width * height * channels; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 7));
  return image;
}

void expect_equal(const Image& a, const Image& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.channels, b.channels);
  EXPECT_EQ(a.pixels, b.pixels);
}

std::string big(uint32_t value) {
  const std::string little = number(value, 4);
  return {little.rbegin(), little.rend()};
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big(static_cast<uint32_t>(data.size())) + body + big(static_cast<uint32_t>(crc));
}

std::string zlib_stream(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size());
  out.resize(size);
  return out;
}

const std::string signature = "\x89PNG\r\n\x1a\n";

std::string ihdr(uint32_t width, uint32_t height, int bits, int colour, int interlace = 0) {
  const std::string rest = {static_cast<char>(bits), static_cast<char>(colour), 0, 0, static_cast<char>(interlace)};
  return chunk("IHDR", big(width) + big(height) + rest);
}

// A file with these raw rows, each with its filter byte.
std::string png(const std::string& head, const std::string& rows, const std::string& before = "") {
  return signature + head + before + chunk("IDAT", zlib_stream(rows)) + chunk("IEND", "");
}

Image decode(const std::string& bytes) { return read_png(memory_source("memory", as_bytes(bytes))); }

void read_all(const std::shared_ptr<const Source>& source) { read_png(source); }

TEST(Png, ImagesSurvive) {
  const ScratchFolder folder;
  for (const int64_t channels : {1, 3}) {
    for (const auto& [width, height] : {std::pair{1, 1}, {7, 3}, {300, 200}}) {
      const Image image = counted_image(width, height, channels);
      write_png(folder.path("a.png"), image);
      expect_equal(read_png(folder.path("a.png")), image);
      EXPECT_EQ(read_text(folder.path("a.png")), encode_png(image));
    }
  }
}

TEST(Png, OtherKindsBecomeEightBitGreyOrRgb) {
  using namespace std::string_literals;
  expect_equal(decode(png(ihdr(3, 1, 1, 0), "\0\xa0"s)), {3, 1, 1, {255, 0, 255}});
  expect_equal(decode(png(ihdr(2, 1, 4, 0), "\0\x1f"s)), {2, 1, 1, {17, 255}});
  expect_equal(decode(png(ihdr(1, 1, 16, 0), "\0\xff\xff"s)), {1, 1, 1, {255}});
  expect_equal(decode(png(ihdr(1, 1, 16, 2), "\0\x80\x80\x00\x00\xff\xff"s)), {1, 1, 3, {128, 0, 255}});
  expect_equal(decode(png(ihdr(1, 1, 8, 4), "\0\x33\x80"s)), {1, 1, 1, {0x33}});
  expect_equal(decode(png(ihdr(1, 1, 8, 6), "\0\1\2\3\4"s)), {1, 1, 3, {1, 2, 3}});
  expect_equal(decode(png(ihdr(2, 1, 8, 3), "\0\1\0"s, chunk("PLTE", "abcdef"))),
               {2, 1, 3, {'d', 'e', 'f', 'a', 'b', 'c'}});
  expect_equal(decode(png(ihdr(2, 1, 8, 3), "\0\1\0"s, chunk("PLTE", "abcdef") + chunk("tRNS", "\x10"))),
               {2, 1, 3, {'d', 'e', 'f', 'a', 'b', 'c'}});
  expect_equal(decode(png(ihdr(2, 1, 8, 0, 1), "\0\5\0\6"s)), {2, 1, 1, {5, 6}});
  expect_equal(decode(png(ihdr(2, 1, 8, 0), "\0\5\6"s, chunk("gAMA", big(100000)))), {2, 1, 1, {5, 6}});
}

TEST(Png, SamplesKeepTheirBits) {
  using namespace std::string_literals;
  const auto samples = [](const std::string& bytes) {
    return read_png_samples(memory_source("memory", as_bytes(bytes)));
  };
  const Array grey = samples(png(ihdr(2, 1, 16, 0), "\0\x12\x34\xff\xfe"s));
  EXPECT_EQ(grey.shape(), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_TRUE(std::ranges::equal(grey.values<uint16_t>(), std::array<uint16_t, 2>{0x1234, 0xfffe}));
  const Array colour = samples(png(ihdr(1, 1, 16, 6), "\0\0\1\0\2\0\3\0\4"s));  // with alpha
  EXPECT_TRUE(std::ranges::equal(colour.values<uint16_t>(), std::array<uint16_t, 3>{1, 2, 3}));
  EXPECT_EQ(samples(png(ihdr(1, 1, 8, 0), "\0\7"s)).values<uint8_t>()[0], 7);
  EXPECT_EQ(samples(png(ihdr(2, 1, 4, 0), "\0\x1f"s)).values<uint8_t>()[0], 17);
  expect_prefixes_refused(png(ihdr(2, 1, 16, 0), "\0\x12\x34\xff\xfe"s),
                          [](const auto& source) { read_png_samples(source); });
}

TEST(Png, RefusesToWrite) {
  const ScratchFolder folder;
  for (const Image& image : {Image{0, 1, 1, {}}, Image{2, 2, 1, {1, 2, 3}}, Image{1, 1, 2, {1, 2}},
                             Image{-1, -1, 1, {1}}, Image{1 << 16, 1, 1, std::vector<uint8_t>(1 << 16)}}) {
    expect_error(ErrorKind::usage, "[write_png] width and height must be 1 to 32768",
                 [&] { write_png(folder.path("a.png"), image); });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expect_error(ErrorKind::io, "cannot create", [] { write_png("/nowhere/a.png", counted_image(1, 1, 1)); });
  expect_error(ErrorKind::io, "No such file", [&] { read_png(folder.path("a.png")); });
}

TEST(Png, PiecesAreRefused) {
  expect_prefixes_refused(encode_png(counted_image(5, 4, 3)), read_all);
  expect_prefixes_refused(encode_png(counted_image(100, 90, 1)), read_all);
}

TEST(Png, DamageIsSurvived) { expect_damage_survived(encode_png(counted_image(5, 4, 3)), read_all); }

TEST(Png, MalformedImages) {
  using namespace std::string_literals;
  const std::string good = ihdr(2, 1, 8, 0), rows = "\0\5\6"s;
  std::string bad_crc = png(good, rows);
  bad_crc[29] = static_cast<char>(bad_crc[29] ^ 1);
  for (const Malformed& file : {
           Malformed{"empty file", "", "expected 8 more bytes"},
           Malformed{"another format", "GIF89a..........", "not a valid PNG image: Not a PNG file"},
           Malformed{"line ends converted", "\x89PNG\n\x1a\n" + good, "not a valid PNG image"},
           Malformed{"only a signature", signature, "expected 8 more bytes"},
           Malformed{"no header", signature + chunk("IDAT", zlib_stream(rows)) + chunk("IEND", ""),
                     "not a valid PNG image: IDAT: Missing IHDR"},
           Malformed{"wrong checksum", bad_crc, "not a valid PNG image: IHDR: CRC error"},
           Malformed{"width 0", png(ihdr(0, 1, 8, 0), rows), "Invalid IHDR data"},
           Malformed{"height 0", png(ihdr(2, 0, 8, 0), rows), "Invalid IHDR data"},
           Malformed{"width 2^31", png(ihdr(1u << 31, 1, 8, 0), rows), "not a valid PNG image"},
           Malformed{"too wide", png(ihdr(40000, 1, 8, 0), rows), "Invalid IHDR data"},
           Malformed{"too high", png(ihdr(1, 40000, 8, 0), rows), "Invalid IHDR data"},
           Malformed{"larger than its data can be", png(ihdr(30000, 30000, 8, 6), rows), "cannot be in a PNG file of"},
           Malformed{"depth 3", png(ihdr(2, 1, 3, 0), rows), "Invalid IHDR data"},
           Malformed{"colour type 1", png(ihdr(2, 1, 8, 1), rows), "Invalid IHDR data"},
           Malformed{"palette of 16 bits", png(ihdr(2, 1, 16, 3), rows), "Invalid IHDR data"},
           Malformed{"interlace 2", png(ihdr(2, 1, 8, 0, 2), rows), "Invalid IHDR data"},
           Malformed{"header of 12 bytes", signature + chunk("IHDR", std::string(12, '\1')), "not a valid PNG image"},
           Malformed{"no palette", png(ihdr(2, 1, 8, 3), rows), "not a valid PNG image: IDAT: Missing PLTE"},
           Malformed{"no data", signature + good + chunk("IEND", ""), "not a valid PNG image"},
           Malformed{"data cut short", png(good, "\0\5"s), "Not enough image data"},
           Malformed{"filter 5", png(good, "\5\5\6"s), "bad adaptive filter value"},
           Malformed{"no zlib stream", signature + good + chunk("IDAT", "xxxxxxxx") + chunk("IEND", ""), "IDAT: "},
           Malformed{"unknown critical chunk", png(good, rows, chunk("ABCD", "")), "unhandled critical chunk"},
           Malformed{"chunk of 2^31 bytes", signature + good + big(1u << 31) + "IDAT", "not a valid PNG image"},
           Malformed{"chunk type of digits", png(good, rows, chunk("1234", "")), "invalid chunk type"},
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
