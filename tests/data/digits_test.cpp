// Digits, drawn and from files: each split its own, centred, told apart, and resized as Pillow resizes them.
#include "convssm/data/digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "idx_bytes.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

double distance2(const Digit& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) sum += (a.pixels[i] - b[i]) * (a.pixels[i] - b[i]);
  return sum;
}

TEST(DrawnDigits, AreAFunctionOfSeedSplitAndIndex) {
  const auto one = drawn_digits(1), again = drawn_digits(1), two = drawn_digits(2);
  for (uint64_t i : {0u, 17u, 9999u}) {
    EXPECT_EQ(one->digit(Split::train, i).pixels, again->digit(Split::train, i).pixels);
    EXPECT_NE(one->digit(Split::train, i).pixels, two->digit(Split::train, i).pixels);
    EXPECT_EQ(one->digit(Split::test, i).label, static_cast<int>(i % 10));
  }
  expect_error([&] { one->digit(Split::test, one->count(Split::test)); }, {"there are 10000 digits, got 10000"});
}

TEST(DrawnDigits, NoTwoHandsAndNoTwoSplitsShareADigit) {
  const auto digits = drawn_digits(3);
  std::set<std::string> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    for (const Split split : all_splits) {
      const auto pixels = digits->digit(split, i).pixels;
      EXPECT_TRUE(seen.emplace(pixels.begin(), pixels.end()).second) << name(split) << " " << i;
    }
  }
}

TEST(DrawnDigits, HandsDifferVisibly) {
  const auto digits = drawn_digits(4);
  for (uint64_t label = 0; label < 10; ++label) {
    for (uint64_t hand = 1; hand < 50; ++hand) {
      const auto a = digits->digit(Split::train, label).pixels,
                 b = digits->digit(Split::train, label + 10 * hand).pixels;
      int changed = 0;
      for (size_t i = 0; i < a.size(); ++i) changed += std::abs(a[i] - b[i]) > 64;
      EXPECT_GT(changed, 8) << label << " of hand " << hand;
    }
  }
}

TEST(DrawnDigits, LieInTheirBoxCentredByMass) {
  const auto digits = drawn_digits(5);
  for (uint64_t i = 0; i < 500; ++i) {
    const Digit digit = digits->digit(Split::train, i);
    ASSERT_EQ(digit.pixels.size(), 28u * 28u);
    double mass = 0, x = 0, y = 0;
    int left = 28, right = -1, top = 28, bottom = -1;
    for (int p = 0; p < 28 * 28; ++p) {
      const int value = digit.pixels[static_cast<size_t>(p)];
      mass += value, x += value * (p % 28 + 0.5), y += value * (p / 28 + 0.5);
      if (value == 0) continue;
      left = std::min(left, p % 28), right = std::max(right, p % 28);
      top = std::min(top, p / 28), bottom = std::max(bottom, p / 28);
    }
    EXPECT_LE(right - left + 1, 22) << i;  // the box, and the soft edge of the pen
    EXPECT_LE(bottom - top + 1, 22) << i;
    EXPECT_GE(std::max(right - left, bottom - top) + 1, 17) << i;
    EXPECT_NEAR(x / mass, 14, 0.51) << i;
    EXPECT_NEAR(y / mass, 14, 0.51) << i;
    EXPECT_EQ(*std::max_element(digit.pixels.begin(), digit.pixels.end()), 255) << i;
  }
}

// A machine that knows nothing but the average of each training digit tells most test digits.
TEST(DrawnDigits, AreToldApart) {
  const auto digits = drawn_digits(6);
  std::vector<std::vector<double>> mean(10, std::vector<double>(28 * 28));
  for (uint64_t i = 0; i < 2000; ++i) {
    const Digit digit = digits->digit(Split::train, i);
    for (size_t p = 0; p < digit.pixels.size(); ++p) mean[i % 10][p] += digit.pixels[p] / 200.0;
  }
  int right = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Digit digit = digits->digit(Split::test, i);
    size_t best = 0;
    for (size_t k = 1; k < 10; ++k) best = distance2(digit, mean[k]) < distance2(digit, mean[best]) ? k : best;
    right += static_cast<int>(best) == digit.label;
  }
  EXPECT_GT(right, 850);
}

class IdxFiles : public ::testing::Test {
 protected:
  IdxFiles() {
    const auto pixel = [](int image, int row, int column) { return image * 16 + row * 4 + column; };
    folder.write("train", idx_images(12, 4, pixel));
    folder.write("labels", idx_labels(12, [](int image) { return image % 10; }));
    folder.write("test",
                 idx_images(3, 4, [&](int image, int row, int column) { return 255 - pixel(image, row, column); }));
  }
  ScratchFolder folder;
};

TEST_F(IdxFiles, TheLastSixthIsForTestingAndATwelfthBeforeItForValidation) {
  const auto digits = idx_digits({folder.path("train"), folder.path("labels"), "", "", false});
  EXPECT_EQ(digits->count(Split::train), 9u);
  EXPECT_EQ(digits->count(Split::valid), 1u);
  EXPECT_EQ(digits->count(Split::test), 2u);
  EXPECT_EQ(digits->digit(Split::train, 8).pixels[5], 8 * 16 + 5);
  EXPECT_EQ(digits->digit(Split::valid, 0).pixels[5], 9 * 16 + 5);
  EXPECT_EQ(digits->digit(Split::test, 1).pixels[5], 11 * 16 + 5);
  EXPECT_EQ(digits->digit(Split::test, 1).label, 1);
  EXPECT_NE(digits->summary().find("last sixth (2)"), std::string::npos) << digits->summary();
  EXPECT_NE(digits->summary().find("twelfth after them (1)"), std::string::npos) << digits->summary();
}

TEST_F(IdxFiles, TestImagesOfTheirOwn) {
  const auto digits = idx_digits({folder.path("train"), "", folder.path("test"), "", false});
  EXPECT_EQ(digits->count(Split::train), 11u);
  EXPECT_EQ(digits->count(Split::valid), 1u);
  EXPECT_EQ(digits->digit(Split::valid, 0).pixels[0], 11 * 16);
  EXPECT_EQ(digits->count(Split::test), 3u);
  EXPECT_EQ(digits->digit(Split::test, 2).pixels[0], 255 - 32);
  EXPECT_EQ(digits->digit(Split::test, 2).label, -1);
}

TEST_F(IdxFiles, MixedSplitsShareAllDigits) {
  const auto digits = idx_digits({folder.path("train"), "", "", "", true});
  for (const Split split : all_splits) {
    EXPECT_EQ(digits->count(split), 12u);
    EXPECT_EQ(digits->digit(split, 3).pixels, digits->digit(Split::train, 3).pixels);
  }
  expect_error([&] { idx_digits({folder.path("train"), "", folder.path("test"), "", true}); }, {"mix_splits"});
}

TEST_F(IdxFiles, WrongFilesAreNamed) {
  expect_error([&] { idx_digits({folder.path("labels"), "", "", "", false}); }, {"labels", "u8 [n,s,s]", "u8 [12]"});
  expect_error([&] { idx_digits({folder.path("train"), folder.path("test"), "", "", false}); }, {"test", "u8 [12]"});
  expect_error([&] { idx_digits({folder.path("nothing"), "", "", "", false}); }, {"nothing"});
  folder.write("few", idx_images(2, 4, [](int, int, int) { return 1; }));
  expect_error([&] { idx_digits({folder.path("few"), "", "", "", false}); }, {"few", "2 images", "testing"});
  EXPECT_EQ(idx_digits({folder.path("few"), "", folder.path("test"), "", false})->count(Split::train), 1u);
}

// Image.fromarray(a, 'F').resize((n, n), Image.BILINEAR) of Pillow, rounded half up; a[i] = 37 i % 256.
TEST(Resize, AgreesWithPillow) {
  Digit digit{6, std::vector<uint8_t>(36), 7};
  for (size_t i = 0; i < 36; ++i) digit.pixels[i] = static_cast<uint8_t>(37 * i % 256);
  EXPECT_EQ(resize(digit, 4).pixels,
            (std::vector<uint8_t>{61, 53, 106, 158, 177, 78, 62, 111, 160, 177, 82, 62, 113, 165, 186, 74}));
  EXPECT_EQ(resize(digit, 3).pixels, (std::vector<uint8_t>{81, 73, 134, 165, 96, 78, 137, 171, 91}));
  const std::vector<uint8_t> first_rows{0, 19, 43, 68, 93, 117, 142, 167, 185, 111, 66, 26, 51, 76, 100, 125, 150, 168};
  const auto larger = resize(digit, 9).pixels;
  EXPECT_EQ(std::vector<uint8_t>(larger.begin(), larger.begin() + 18), first_rows);
  EXPECT_EQ(resize(digit, 4).label, 7);
  EXPECT_EQ(resize(digit, 6).pixels, digit.pixels);
}

}  // namespace
}  // namespace convssm::data
