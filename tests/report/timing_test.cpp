// The timing study as tables and charts, of a file written by hand.
#include "convssm/report/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "convssm/report/picture.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

nlohmann::json scores(const std::vector<nlohmann::json>& psnr) {
  return {{"mean", psnr}, {"error", std::vector<double>(psnr.size(), 0.1)}};
}

nlohmann::json example() {
  const auto line = [](const char* name, const nlohmann::json& first, const nlohmann::json& second) {
    return nlohmann::json{{"name", name}, {"psnr_f01", scores({first, second})}, {"ssim_gauss11", scores({0.5, 0.25})}};
  };
  return {{"protocol", {{"samples", 64}, {"context", 25}, {"frames", 75}}},
          {"rates",
           {{"rate", {4.0, 4.0 / 3}},
            {"lines",
             {line("rescaled, one interval ahead", 20.123, 21), line("rescaled, next frame", 19, nullptr),
              line("copy, one interval ahead", 15, 16)}}}},
          {"dropped",
           {{"probability", {0, 0.6}}, {"lines", {line("true intervals", 22, 18), line("last frame held", 22, 17)}}}}};
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

TEST(Timing, IsTablesForATerminal) {
  const std::string text = timing_text(example());
  for (const char* part : {"PSNR, frame rate", "      4x   1.33x\n", "SSIM, frames missing", "     0 %    60 %\n",
                           "  rescaled, next frame           19.00       -\n", "64 test clips"}) {
    expect_part(text, part);
  }
}

TEST(Timing, ChartsHaveTheColourOfTheWay) {
  const Chart rates = rates_chart(example()), dropped = dropped_chart(example());
  ASSERT_EQ(rates.lines.size(), 3u);
  EXPECT_EQ(rates.lines[0].color, rates.lines[1].color);
  EXPECT_EQ(rates.lines[1].stroke, Stroke::dashed);
  EXPECT_EQ(rates.lines[2].color, line_colors - 1);
  EXPECT_NEAR(rates.lines[0].points[0].x, 133.3, 0.1);
  EXPECT_TRUE(std::isnan(rates.lines[1].points[0].y));
  EXPECT_EQ(dropped.lines[1].color, 1);
  EXPECT_EQ(dropped.lines[0].points[1].x, 60);
  expect_part(chart_svg(rates), ">200</text>");
  expect_part(chart_svg(dropped), "last frame held");
}

}  // namespace
}  // namespace convssm::report
