// The plot of the page with title and legend drawn into the SVG itself, where the page has HTML for them. Two pixels
// per unit, so that text is sharp on dense screens.
#include "convssm/report/picture.h"

#include <fmt/format.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/report/html.h"
#include "convssm/report/plot.h"
#include "convssm/report/raster.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr double kMargin = 16, kRow = 19, kTitle = 22, kScale = 2;
constexpr double kMark = 22, kGap = 18;  // of the legend: the line before a name, between two

struct Block {
  std::string elements;
  double height = 0;
};

Block draw_title(const Chart& chart, const std::string& hint) {
  Block block{fmt::format("<text class=\"title\" x=\"0\" y=\"14\">{}</text>\n", escape(chart.title)), kTitle};
  if (hint.empty()) return block;
  block.elements += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", block.height + 9, escape(hint));
  block.height += kRow;
  return block;
}

// Entries in rows as wide as the plot.
Block draw_legend(const Chart& chart) {
  Block block;
  double x = 0;
  for (const Line* line : legend_lines(chart)) {
    const double width = kMark + text_width(line->name) + kGap;
    if (block.height == 0 || x + width - kGap > kPlotWidth) {
      x = 0;
      block.height += kRow;
    }
    const double y = block.height - 6;
    block.elements += fmt::format(
        "<g class=\"c{}\"><path class=\"line{}\" d=\"M{:.1f} {:.1f}h16\"/></g><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        line->color % line_colors, stroke_class(line->stroke), x, y - 4, x + kMark, y, escape(line->name));
    x += width;
  }
  return block;
}

struct Drawing {
  std::string svg;
  int width = 0, height = 0;
};

Drawing draw_all(const Chart& chart) {
  if (!has_points(chart)) fail(ErrorKind::usage, "[picture] the chart '{}' has no finite value to draw", chart.title);
  const Plot plot = make_plot(chart);
  const Block title = draw_title(chart, plot.hint), legend = draw_legend(chart);
  const double top = kMargin + title.height, below = top + legend.height + 4;
  Drawing drawing;
  drawing.width = static_cast<int>(kPlotWidth + 2 * kMargin);
  drawing.height = static_cast<int>(std::ceil(below + kPlotHeight + kMargin / 2));
  std::string elements;
  const auto place = [&](double y, const std::string& inside) {
    elements += fmt::format("<g transform=\"translate({},{})\">\n{}</g>\n", kMargin, y, inside);
  };
  place(kMargin, title.elements);
  place(top, legend.elements);
  place(below, plot.elements);
  drawing.svg = svg_document(drawing.width, drawing.height, elements);
  return drawing;
}

}  // namespace

std::string chart_svg(const Chart& chart) { return draw_all(chart).svg; }

io::Image chart_image(const Chart& chart) {
  const Drawing drawing = draw_all(chart);
  const int width = static_cast<int>(kScale) * drawing.width, height = static_cast<int>(kScale) * drawing.height;
  return rasterize(drawing.svg, width, height);
}

void write_chart_png(const std::string& path, const Chart& chart) { io::write_png(path, chart_image(chart)); }

}  // namespace convssm::report
