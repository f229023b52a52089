// The page of measured numbers: blocks are replaced, the rest stays; files of rows come back as they were.
#include "convssm/bench/page.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"
#include "convssm/bench/page_charts.h"
#include "convssm/io/png.h"
#include "tests/base/scratch_folder.h"

namespace convssm::bench {
namespace {

Row compared(const std::string& name, double value, double reference, const std::string& what) {
  return {name, value, "frames/s", reference, reference / value, 0.25, what};
}

Results some_results() {
  Results r;
  r.about = {{"machine", "A Processor"}, {"threads", 2}, {"isa", "AVX2"}, {"version", "9.9"}, {"rounds", 5}};
  r.rows = {compared("limit.train.convs5.mini", 200, 100, "its convolutions alone; goal 0.75"),
            single("cost.convs5.parameters", 21.68, "million"),
            single("cost.convs5.train", 0.5, "s/frame"),
            single("cost.convs5.generate.1200", 40, "frames/s"),
            single("cost.convlstm.train", 1.75, "s/frame"),
            single("cost.transformer_recompute.generate.1200", 0.2, "frames/s"),
            compared("generate.convs5.paper", 50, 10, "PyTorch 1.13 (contiguous); goal 5"),
            single("scaling.train.convs5.25", 0.1, "s"),
            single("scaling.train.convs5.800", 3.2, "s"),
            single("scaling.train.transformer.25", 0.2, "s")};
  return r;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Page, ReplacesBlocksAndKeepsTheText) {
  const std::string text =
      "# Title\nbefore\n<!-- bench limit -->\nold\n<!-- end -->\nbetween\n<!-- bench kernels -->\nkept\n<!-- end "
      "-->\nafter\n";
  const std::string filled = fill_page(text, some_results(), "p");
  EXPECT_TRUE(contains(filled, "# Title\nbefore\n<!-- bench limit -->\n| ConvS5 |"));
  EXPECT_TRUE(contains(filled, "| training, small | 200 | 100 | 0.50 ± 0.25 | 0.75 |\n<!-- end -->\nbetween\n"));
  EXPECT_FALSE(contains(filled, "old"));
  EXPECT_TRUE(contains(filled, "<!-- bench kernels -->\nkept\n<!-- end -->\nafter\n"));  // no rows of it
  EXPECT_EQ(fill_page(filled, some_results(), "p"), filled);
}

TEST(Page, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(fill_page("<!-- bench speed -->\n<!-- end -->\n", some_results(), "p"), Error);
  EXPECT_THROW(fill_page("<!-- bench limit -->\nno end\n", some_results(), "p"), Error);
}

TEST(Page, ComparesTheClaimsOfThePaper) {
  const std::string claims = claims_block(some_results());
  EXPECT_TRUE(contains(claims, "| 3x | 3.50x |")) << claims;
  EXPECT_TRUE(contains(claims, "| 429x | 200x |")) << claims;
  EXPECT_FALSE(contains(claims, "with a cache")) << claims;  // not measured
}

TEST(Page, ShowsRowsOfThePeerWithTheirGoal) {
  const std::string peer = peer_block(some_results());
  EXPECT_TRUE(contains(peer, "| generation, paper's size | 50.0 frames/s | 10.0 frames/s | 0.20 ± 0.25 | 5 |")) << peer;
  EXPECT_TRUE(contains(peer, "PyTorch 1.13 (contiguous)."));
}

TEST(Page, HasOneLineOfACurvePerModel) {
  const auto charts = page_charts(some_results());
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].first, "training_time");
  ASSERT_EQ(charts[0].second.lines.size(), 2u);
  EXPECT_EQ(charts[0].second.lines[0].points.size(), 2u);
  EXPECT_EQ(charts[0].second.lines[0].points[1].x, 800);
  EXPECT_EQ(charts[0].second.lines[0].points[1].y, 3.2);
}

TEST(Page, IsFilledInItsPlaceWithPicturesBesideIt) {
  const ScratchFolder folder;
  folder.write("speed.md", "<!-- bench curves -->\n<!-- end -->\n<!-- bench machine -->\n<!-- end -->\n");
  write_results(folder.path("rows.json"), some_results());
  const auto written = update_page(folder.path("speed.md"), read_results({folder.path("rows.json")}));
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(io::read_png(folder.path("speed_training_time.png")).channels, 3);
  const std::string page = read_text(folder.path("speed.md"));
  EXPECT_TRUE(contains(page, "](speed_training_time.png)")) << page;
  EXPECT_TRUE(contains(page, "A Processor, 2 threads, AVX2; convssm 9.9.")) << page;
  EXPECT_THROW(update_page(folder.path("none.md"), some_results()), Error);
}

TEST(Results, LaterFilesReplaceRows) {
  const ScratchFolder folder;
  Results second;
  second.rows = {single("cost.convs5.train", 0.25, "s/frame"), single("new", 1, "x")};
  write_results(folder.path("a.json"), some_results());
  write_results(folder.path("b.json"), second);
  const Results both = read_results({folder.path("a.json"), folder.path("b.json")});
  EXPECT_EQ(both.rows.size(), some_results().rows.size() + 1);
  EXPECT_EQ(both.find("cost.convs5.train")->value, 0.25);
  EXPECT_EQ(both.find("limit.train.convs5.mini")->ratio, 0.5);
  EXPECT_EQ(both.about.at("isa"), "AVX2");
  folder.write("bad.json", "{\"rows\": [{\"name\": 3}]}");
  EXPECT_THROW(read_results({folder.path("bad.json")}), Error);
  EXPECT_THROW(read_results({folder.path("missing.json")}), Error);
}

}  // namespace
}  // namespace convssm::bench
