// The page of results, its pictures, and the marks that all pages share.
#include "convssm/report/results_page.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"
#include "convssm/report/marked_page.h"
#include "convssm/report/strips.h"
#include "tests/report/fake_records.h"

namespace convssm::report {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MarkedPage, FillsTheBlocksOfItsPrefixAlone) {
  const std::string text = "a\n<!-- x one -->\nold\n<!-- end -->\nb\n<!-- y one -->\nkept\n<!-- end -->\n";
  const auto make = [](const std::string& name) { return name + " is new\n"; };
  EXPECT_EQ(fill_blocks(text, "x", make),
            "a\n<!-- x one -->\none is new\n<!-- end -->\nb\n<!-- y one -->\nkept\n<!-- end -->\n");
  EXPECT_EQ(fill_blocks(text, "x", [](const std::string&) { return ""; }), text);
  EXPECT_THROW(fill_blocks("<!-- x one -->\n", "x", make), Error);
  EXPECT_THROW(read_page("/nowhere/page.md"), Error);
}

struct Pages : testing::Test {
  ScratchFolder folder;
  std::vector<std::string> update(const std::string& page, const ResultsPageOptions& options = {}) const {
    return update_results_page(folder.path(page), read_records({folder.path("results")}), options);
  }
};

TEST_F(Pages, AreFilledWithPicturesBesideThem) {
  write_fake_results(folder);
  io::write_png(folder.path("results/a_lstm/timing_rates.png"), fake_strip());
  std::string text;
  for (const char* name :
       {"machine", "table", "seeds", "curves", "strips", "ablations", "sweep", "rates", "rows", "timing"}) {
    text += fmt::format("<!-- results {} -->\nold\n<!-- end -->\n", name);
  }
  folder.write("docs/results.md", text);
  const auto written = update("docs/results.md");
  const std::string page = read_text(folder.path("docs/results.md"));
  EXPECT_FALSE(contains(page, "old")) << page;
  for (const char* part : {"](results_psnr.png)", "](results_strips.png)", "](results_timing_rates.png)"}) {
    EXPECT_TRUE(contains(page, part)) << part << page;
  }
  EXPECT_FALSE(contains(page, "results_lpips.png"));  // no curve of it
  ASSERT_EQ(written.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(io::read_png(written[i]).width, 0);
  update("docs/results.md");
  EXPECT_EQ(read_text(folder.path("docs/results.md")), page);
}

TEST_F(Pages, MayHaveTheirPicturesElsewhere) {
  write_fake_results(folder);
  folder.write("README.md", "<!-- results strips -->\n<!-- end -->\n<!-- results short -->\n<!-- end -->\n");
  const auto written = update("README.md", {.pictures = folder.path("docs")});
  EXPECT_EQ(written.at(0), folder.path("docs/results_strips.png"));
  const std::string page = read_text(folder.path("README.md"));
  EXPECT_TRUE(contains(page, "](docs/results_strips.png)")) << page;
  EXPECT_TRUE(contains(page, "| ConvS5 | **20.50** | 0.150 |")) << page;
}

TEST_F(Pages, HaveTheTimingStudyUnlessItIsDamaged) {
  write_fake_run(folder, {"a"});
  folder.write("page.md", "<!-- results timing -->\nold\n<!-- end -->\n");
  const char* line = R"([{"name": "rescaled", "psnr_f01": {"mean": [20]}, "ssim_gauss11": {"mean": [0.5]}}])";
  folder.write("results/a/timing.json", fmt::format(R"({{"protocol": {{"samples": 4, "context": 2, "frames": 9}},
      "rates": {{"rate": [2], "lines": {0}}}, "dropped": {{"probability": [0.5], "lines": {0}}}}})",
                                                    line));
  update("page.md");
  const std::string page = read_text(folder.path("page.md"));
  EXPECT_TRUE(contains(page, "| 2x | 20.00, 0.500 |\n")) << page;
  for (const char* damaged : {"{\"rates\": 3", "{\"rates\": 3}", "[]"}) {
    folder.write("results/a/timing.json", damaged);
    update("page.md");
    EXPECT_EQ(read_text(folder.path("page.md")), page);
  }
}

TEST_F(Pages, KeepBlocksWithoutRecords) {
  write_fake_run(folder, {"a"});
  const std::string text = "<!-- results sweep -->\nkept\n<!-- end -->\n<!-- results timing -->\nkept\n<!-- end -->\n";
  folder.write("page.md", text);
  EXPECT_EQ(update("page.md").size(), 1u);
  EXPECT_EQ(read_text(folder.path("page.md")), text);
}

TEST_F(Pages, WithAnUnknownBlockWriteNothing) {
  write_fake_results(folder);
  folder.write("page.md", "<!-- results strips -->\n<!-- end -->\n<!-- results speed -->\n<!-- end -->\n");
  EXPECT_THROW(update("page.md"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path("results_strips.png")));
}

TEST_F(Pages, WithoutABlockAreAMistake) {
  write_fake_results(folder);
  folder.write("page.md", "# Results\n");
  EXPECT_THROW(update("page.md"), Error);
}

struct Strips : Pages {
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
