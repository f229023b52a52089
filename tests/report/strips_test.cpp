// Forecasts of several runs in one picture.
#include "convssm/report/strips.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"
#include "tests/report/fake_records.h"

namespace convssm::report {
namespace {

struct Strips : testing::Test {
  ScratchFolder folder;
  io::Image draw() const {
    records = read_records({folder.path("results")});
    std::vector<const Record*> rows;
    for (const Record& record : records) rows.push_back(&record);
    return strips_image(rows, 0);
  }
  mutable std::vector<Record> records;
};

// Tiles are enlarged twice and stay what they are, pixel by pixel.
TEST_F(Strips, HaveTruthAboveAndARowForEachRun) {
  write_fake_run(folder, {"a"});
  write_fake_run(folder, {"b"});
  const io::Image image = draw();
  int64_t black = 0, grey = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    black += image.pixels[i] == 0 && image.pixels[i + 1] == 0 && image.pixels[i + 2] == 0 ? 1 : 0;
    grey += image.pixels[i] == 70 && image.pixels[i + 1] == 70 && image.pixels[i + 2] == 70 ? 1 : 0;
  }
  EXPECT_EQ(black, 4 * 16 * 16);
  EXPECT_NEAR(static_cast<double>(grey), 3 * 3 * 4 * 16, 40);  // the gaps of three rows; letters may have such a grey
}

// Of 20 moments ten are shown, the first ones closer together, the last among them.
TEST_F(Strips, OfManyMomentsShowMoreOfTheFirst) {
  write_fake_run(folder, {"a"});
  nlohmann::json metrics = fake_metrics({"a"});
  metrics["horizons"][1]["frames"] = 300;
  folder.write("results/a/metrics.json", metrics.dump());
  io::Image strip{20 * 10 - 2, 2 * 10 - 2, 1, std::vector<uint8_t>(198 * 18)};
  for (size_t i = 0; i < strip.pixels.size(); ++i) strip.pixels[i] = static_cast<uint8_t>(5 + 10 * (i % 198 / 10));
  io::write_png(folder.path("results/a/samples/evaluate-strip-0.png"), strip);
  const io::Image image = draw();
  std::vector<int64_t> shown, count(256);
  for (size_t i = 0; i < image.pixels.size(); i += 3) ++count[image.pixels[i]];
  for (size_t column = 0; column < 20; ++column) {
    if (count[5 + 10 * column] >= 2 * 16 * 16) shown.push_back(static_cast<int64_t>(column));
  }
  EXPECT_EQ(shown, (std::vector<int64_t>{0, 1, 2, 4, 6, 8, 10, 13, 16, 19}));
}

TEST_F(Strips, OfOtherClipsOrSizesAreRefused) {
  write_fake_run(folder, {"a"});
  write_fake_run(folder, {"b"});
  io::write_png(folder.path("results/b/samples/evaluate-strip-0.png"), fake_strip(9));
  EXPECT_THROW(draw(), Error);
  io::write_png(folder.path("results/b/samples/evaluate-strip-0.png"), {37, 18, 1, std::vector<uint8_t>(37 * 18)});
  EXPECT_THROW(draw(), Error);
  std::filesystem::remove(folder.path("results/b/samples/evaluate-strip-0.png"));
  EXPECT_NO_THROW(draw());  // of those that have one
  std::filesystem::remove(folder.path("results/a/samples/evaluate-strip-0.png"));
  EXPECT_THROW(draw(), Error);
}

}  // namespace
}  // namespace convssm::report
