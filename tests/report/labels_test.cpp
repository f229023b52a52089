// Words above pictures: each over its column.
#include "convssm/report/labels.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace convssm::report {
namespace {

// The brightest pixel of a part of the picture.
int brightest(const io::Image& image, int64_t left, int64_t right, int64_t top, int64_t bottom) {
  int most = 0;
  for (int64_t y = top; y < bottom; ++y) {
    for (int64_t x = left; x < right; ++x) most = std::max<int>(most, image.pixels[y * image.width + x]);
  }
  return most;
}

TEST(Labels, StandOverTheirColumns) {
  const io::Image image = label_picture({"truth", "", "a < b"}, "", 300);
  ASSERT_EQ(image.width, 300);
  ASSERT_EQ(image.channels, 1);
  ASSERT_EQ(image.pixels.size(), static_cast<size_t>(image.width * image.height));
  const int ground = image.pixels[0];
  EXPECT_GT(brightest(image, 0, 100, 0, image.height / 2), 200);
  EXPECT_EQ(brightest(image, 100, 200, 0, image.height), ground);
  EXPECT_GT(brightest(image, 200, 300, 0, image.height / 2), 200);
  EXPECT_EQ(brightest(image, 0, 300, image.height / 2 + 2, image.height), ground);
}

TEST(Labels, TheLineStandsBelow) {
  const io::Image image = label_picture({""}, "12 frames ahead", 200);
  EXPECT_EQ(brightest(image, 0, 200, 0, image.height / 2), image.pixels[0]);
  EXPECT_GT(brightest(image, 50, 150, image.height / 2, image.height), 120);
}

}  // namespace
}  // namespace convssm::report
