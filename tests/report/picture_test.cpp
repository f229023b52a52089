// Charts as pictures: what is in the SVG, and that its colours and letters really arrive in the pixels.
#include "convssm/report/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "convssm/base/error.h"
#include "convssm/report/style.h"
#include "tests/base/scratch_folder.h"

namespace convssm::report {
namespace {

Chart two_lines() {
  return {"id",
          "Speed & cost",
          "ms",
          "frames",
          Scale::logarithmic,
          {{"one <1>", {{25, 1}, {800, 30}}, 0, Stroke::solid}, {"two", {{25, 2}, {800, 2000}}, 1, Stroke::dashed}},
          Scale::logarithmic};
}

using Colour = std::array<uint8_t, 3>;

// Pixels within a few steps of a colour: lines are drawn with soft edges.
int64_t count(const io::Image& image, const Colour& colour) {
  int64_t found = 0;
  for (size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
    bool near = true;
    for (size_t c = 0; c < 3; ++c) near = near && std::abs(int{image.pixels[i + c]} - int{colour[c]}) < 12;
    found += near ? 1 : 0;
  }
  return found;
}

TEST(Pictures, AreCompleteDocuments) {
  const std::string svg = chart_svg(two_lines());
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\""), 0u);
  for (const char* part : {"Speed &amp; cost", "one &lt;1&gt;</text>", "two</text>", "ms, log scale", ">frames</text>",
                           ">100</text>", ">300</text>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("var("), std::string::npos);
}

TEST(Pictures, HaveTheColoursOfThePage) {
  const std::string svg = chart_svg(two_lines());
  int rules = 0;
  for (; rules < line_colors; ++rules) {
    const std::string begin = ".c" + std::to_string(rules) + " { color: ";
    const size_t at = svg.find(begin);
    if (at == std::string::npos) break;
    const std::string definition = "--c" + std::to_string(rules) + ": " + svg.substr(at + begin.size(), 7);
    EXPECT_NE(std::string(style_sheet).find(definition), std::string::npos) << definition;
  }
  EXPECT_EQ(rules, line_colors);
}

TEST(Pictures, ShowLinesAndLetters) {
  const io::Image image = chart_image(two_lines());
  ASSERT_EQ(static_cast<int64_t>(image.pixels.size()), image.width * image.height * 3);
  EXPECT_EQ(image.width, 2 * 552);
  const Colour first{0x1f, 0x6f, 0xeb}, second{0xd9, 0x54, 0x1e}, third{0x2a, 0x9d, 0x5c}, ink{0x1c, 0x23, 0x30};
  EXPECT_GT(count(image, first), 2000);
  EXPECT_GT(count(image, second), count(image, first) / 3);
  EXPECT_EQ(count(image, third), 0);
  EXPECT_GT(count(image, ink), 200);  // the title: a font was found
  EXPECT_GT(count(image, {255, 255, 255}), image.width * image.height / 2);
}

TEST(Pictures, ALogarithmicAxisPutsEqualFactorsAtEqualDistances) {
  Chart chart = two_lines();
  chart.lines = {{"one", {{10, 1}, {100, 10}, {1000, 100}}, 0, Stroke::solid}};
  const std::string svg = chart_svg(chart);
  std::array<double, 6> p{};
  const size_t path = svg.find("d=\"M");
  ASSERT_NE(path, std::string::npos);
  ASSERT_EQ(std::sscanf(svg.c_str() + path, "d=\"M%lf %lfL%lf %lfL%lf %lf\"", &p[0], &p[1], &p[2], &p[3], &p[4], &p[5]),
            6);
  const auto at = [&](int i) { return p[static_cast<size_t>(i - 1)]; };
  EXPECT_NEAR(at(3) - at(1), at(5) - at(3), 0.02);
  EXPECT_NEAR(at(4) - at(2), at(6) - at(4), 0.02);
  EXPECT_GT(at(3), at(1) + 50);
}

TEST(Pictures, LongLegendsTakeMoreRows) {
  Chart chart = two_lines();
  const int64_t before = chart_image(chart).height;
  for (int i = 2; i < 8; ++i) {
    chart.lines.push_back({"a line with quite a long name", {{25, 1.0 * i}, {800, 2.0 * i}}, i, Stroke::solid});
  }
  EXPECT_GT(chart_image(chart).height, before + 2 * 19);
}

TEST(Pictures, AreWrittenAndReadBack) {
  const ScratchFolder folder;
  write_chart_png(folder.path("chart.png"), two_lines());
  const io::Image drawn = chart_image(two_lines()), read = io::read_png(folder.path("chart.png"));
  EXPECT_EQ(read.pixels, drawn.pixels);
}

TEST(Pictures, WithoutValuesAreAnError) {
  Chart chart = two_lines();
  chart.lines = {{"nothing", {{1, NAN}}, 0, Stroke::solid}};
  EXPECT_THROW(chart_svg(chart), Error);
}

}  // namespace
}  // namespace convssm::report
