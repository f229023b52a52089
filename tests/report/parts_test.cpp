// The parts of the page: escaping, numbers, thinning of curves, axes, charts.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/report/axis.h"
#include "convssm/report/chart.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/points.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Html, EscapesWhatHasAMeaning) {
  EXPECT_EQ(escape("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escape("Zürich ± 3 日本"), "Zürich ± 3 日本");
  EXPECT_EQ(escape(std::string("a\0b\x1b\r\n\tc", 8)), "ab\n\tc");
  EXPECT_EQ(escape("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Html, Base64IsThatOfTheStandard) {
  // RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

TEST(Numbers, AreShort) {
  EXPECT_EQ(compact(20100000), "20.1M");
  EXPECT_EQ(compact(999), "999");
  EXPECT_EQ(compact(999999), "1M");
  EXPECT_EQ(compact(12345), "12.3k");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(short_number(0.0321234), "0.03212");
  EXPECT_EQ(short_number(123456), "123456");
  EXPECT_EQ(short_number(3e-5), "3e-5");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(NAN), "–");
  EXPECT_EQ(tick_label(150000, 50000), "150k");
  EXPECT_EQ(tick_label(0.75, 0.05), "0.75");
  EXPECT_EQ(tick_label(1e-3, 2e-4), "1e-3");
  EXPECT_EQ(tick_label(-1e-17, 0.1), "0");
  EXPECT_EQ(tick_label(2500000, 500000), "2.5M");
}

TEST(Points, KeepTheExtremesOfEachPart) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({double(i), std::sin(i * 1e-3)});
  points[54321].y = 50;
  points[77777].y = -50;
  const auto few = min_max(points, 200);
  EXPECT_LE(few.size(), 402u);
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 99999);
  EXPECT_GE(few.size(), 300u);
  double least = 0, most = 0;
  for (size_t i = 0; i < few.size(); ++i) {
    least = std::min(least, few[i].y);
    most = std::max(most, few[i].y);
    EXPECT_TRUE(i == 0 || few[i - 1].x < few[i].x);
  }
  EXPECT_EQ(most, 50);
  EXPECT_EQ(least, -50);
}

TEST(Points, ShortCurvesStayAndGapsStayGaps) {
  EXPECT_EQ(min_max({{1, 2}, {2, 3}, {3, 1}}, 2).size(), 3u);
  EXPECT_TRUE(min_max({}, 10).empty());
  EXPECT_TRUE(means({}, 10).empty());
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) points.push_back({double(i), i >= 400 && i < 600 ? NAN : 1.0});
  EXPECT_EQ(count_not_finite(points), 200u);
  EXPECT_GT(count_not_finite(min_max(points, 50)), 5u);
  for (const Point& p : means(points, 10)) EXPECT_EQ(std::isnan(p.y), p.x >= 400 && p.x < 600) << p.x;
  EXPECT_EQ(means(std::vector<Point>(100, {7, 3}), 10).size(), 1u);  // all at the same step
}

TEST(Points, MeansAreThoseOfTheParts) {
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i) points.push_back({double(i), double(i % 10)});
  const auto smooth = means(points, 10);
  EXPECT_LE(smooth.size(), 10u);
  for (const Point& p : smooth) EXPECT_NEAR(p.y, 4.5, 0.6);
}

TEST(Axes, HaveFewRoundTicks) {
  const std::vector<std::pair<double, double>> ranges{{0, 189000}, {14, 24.5}, {0.58, 0.9},   {0, 1e-3},
                                                      {-3, 7},     {5, 5},     {0, 0},        {1e6, 1e6 + 1},
                                                      {1, 1200},   {-1e-9, 0}, {0.999, 1.001}};
  for (const auto& [least, most] : ranges) {
    const auto ticks = linear_axis(least, most, true, 0.05).ticks(6);
    EXPECT_GE(ticks.size(), 3u) << least << " " << most;
    EXPECT_LE(ticks.size(), 10u) << least << " " << most;
    for (size_t i = 1; i < ticks.size(); ++i) EXPECT_NE(ticks[i - 1].label, ticks[i].label) << least << " " << most;
  }
  for (const auto& [least, most] : {std::pair{0.01, 0.3}, {0.01, 1.0}, {1e-3, 40.0}, {1e-30, 1e30}, {3.0, 50.0}}) {
    const auto ticks = log_axis(least, most).ticks(6);
    EXPECT_GE(ticks.size(), 2u) << least << " " << most;
    EXPECT_LE(ticks.size(), 8u) << least << " " << most;
  }
}

Chart chart_of(std::vector<Point> points, Scale scale = Scale::automatic) {
  return {"id", "A & B", "", "step", scale, {{"line <1>", std::move(points), 0, Stroke::solid}}};
}

TEST(Charts, DrawEachRunOfValuesAndMarkSinglePoints) {
  const std::string svg = draw(chart_of({{0, 1}, {1, 2}, {2, NAN}, {3, 3}, {4, INFINITY}, {5, 2}, {6, 1}}));
  EXPECT_EQ(count(svg, "M"), 3);
  EXPECT_FALSE(contains(svg, "nan"));
  EXPECT_FALSE(contains(svg, "inf"));
  EXPECT_TRUE(contains(svg, "A &amp; B"));
  EXPECT_TRUE(contains(svg, "line &lt;1&gt;"));
  EXPECT_EQ(count(svg, "<circle"), 5);
  EXPECT_EQ(count(draw(chart_of(std::vector<Point>(1, {5, 5}))), "<circle"), 1);
}

TEST(Charts, AreLogarithmicOnlyWhereThatHelps) {
  EXPECT_TRUE(contains(draw(chart_of({{0, 100}, {1, 1}})), "log scale"));
  EXPECT_FALSE(contains(draw(chart_of({{0, 10}, {1, 1}})), "log scale"));
  EXPECT_FALSE(contains(draw(chart_of({{0, 100}, {1, 0}})), "log scale"));
  EXPECT_FALSE(contains(draw(chart_of({{0, 100}, {1, 1}}, Scale::linear)), "log scale"));
}

TEST(Charts, WithoutValuesAreNotDrawn) {
  EXPECT_EQ(draw(chart_of({})), "");
  EXPECT_EQ(draw(chart_of({{0, NAN}, {1, INFINITY}, {2, 1e300}})), "");
}

TEST(Charts, ALegendOnlyForSeveralLines) {
  Chart chart = chart_of({{0, 1}, {1, 2}});
  EXPECT_FALSE(contains(draw(chart), "legend"));
  chart.lines.push_back({"faint", {{0, 1}}, 0, Stroke::faint});
  EXPECT_FALSE(contains(draw(chart), "legend"));
  chart.lines.push_back({"other", {{0, 1}}, 1, Stroke::dashed});
  EXPECT_TRUE(contains(draw(chart), "<i class=\"c1 dashed\"></i>other"));
}

TEST(Samples, AreNamedByTheirFiles) {
  EXPECT_EQ(caption("step-000500.gif"), "step 500");
  EXPECT_EQ(caption("evaluate-strip-0.png"), "evaluate strip 0");
  EXPECT_EQ(caption("a__b"), "a b");
  EXPECT_EQ(caption(".png"), "");
}

}  // namespace
}  // namespace convssm::report
