// Values beyond 1e100 count as missing, since differences of such would overflow. A gap (NaN) lifts the pen; a point
// between two gaps gets a dot, or it would be invisible. The left margin follows from the longest label.
#include "convssm/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convssm/report/html.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr double kTop = 10, kRight = 504, kBottom = 228;
constexpr double kCharacter = 6.8;  // width of a digit of a label
constexpr size_t kDots = 30;        // a line of at most this many points shows them

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// Beyond any use, and the difference of two such values would overflow.
constexpr double kHuge = 1e100;

bool visible(const Point& p) { return std::abs(p.x) < kHuge && std::abs(p.y) < kHuge; }

Axis make_axis(Scale scale, const Extent& extent, double room) {
  const bool wide = extent.most >= 15 * extent.least;
  const bool log = extent.least > 0 && (scale == Scale::logarithmic || (scale == Scale::automatic && wide));
  return log ? log_axis(extent.least, extent.most) : linear_axis(extent.least, extent.most, true, room);
}

Axes make_axes(const Chart& chart) {
  Extent x, y;
  for (const Line& line : chart.lines) {
    for (const Point& p : line.points) {
      if (!visible(p)) continue;
      x.add(p.x);
      y.add(p.y);
    }
  }
  Axes axes{make_axis(chart.x_scale, x, 0), make_axis(chart.scale, y, 0.05)};
  axes.y.begin = kBottom;
  axes.y.end = kTop;
  axes.x.end = kRight;
  return axes;
}

std::string y_ticks(Axes& axes) {
  const auto ticks = axes.y.ticks(6);
  size_t longest = 1;
  for (const Tick& tick : ticks) longest = std::max(longest, tick.label.size());
  axes.x.begin = 14 + kCharacter * static_cast<double>(longest);
  std::string out;
  for (const Tick& tick : ticks) {
    const double y = axes.y.pixel(tick.value);
    out += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", axes.x.begin,
                       kRight, y, y);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", axes.x.begin - 7, y + 4,
                       tick.label);
  }
  return out;
}

std::string x_ticks(const Axes& axes, const std::string& label) {
  std::string out = fmt::format("<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>\n",
                                axes.x.begin, kRight, kBottom, kBottom);
  for (const Tick& tick : axes.x.ticks(6)) {
    if (std::abs(tick.value - std::round(tick.value)) > 1e-6) continue;  // steps and frames are whole
    const double x = axes.x.pixel(tick.value);
    const double half = kCharacter * static_cast<double>(tick.label.size()) / 2;
    out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x, kBottom,
                       kBottom + 5);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       std::min(x, kPlotWidth - half - 1), kBottom + 19, tick.label);
  }
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                           (axes.x.begin + kRight) / 2, kBottom + 38, escape(label));
}

// "M x y L x y ..." with a new M after each gap.
std::string path_of(const Line& line, const Axes& axes) {
  std::string out;
  bool pen_down = false;
  for (const Point& p : line.points) {
    if (visible(p)) out += fmt::format("{}{:.2f} {:.2f}", pen_down ? "L" : "M", axes.x.pixel(p.x), axes.y.pixel(p.y));
    pen_down = visible(p);
  }
  return out;
}

std::string dots_of(const Line& line, const Axes& axes) {
  std::string out;
  const auto alone = [&](size_t i) {
    return (i == 0 || !visible(line.points[i - 1])) && (i + 1 == line.points.size() || !visible(line.points[i + 1]));
  };
  for (size_t i = 0; i < line.points.size(); ++i) {
    const Point& p = line.points[i];
    const bool dense = line.points.size() > kDots || line.stroke == Stroke::dashed || line.stroke == Stroke::dotted;
    if (!visible(p) || (dense && !alone(i))) continue;
    out += fmt::format("<circle class=\"dot\" r=\"2.6\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>", axes.x.pixel(p.x),
                       axes.y.pixel(p.y));
  }
  return out;
}

std::string draw_line(const Line& line, const Axes& axes) {
  const int color = line.color % line_colors;
  return fmt::format("<g class=\"c{}\"><path class=\"line{}\" data-name=\"{}\" data-color=\"c{}\" d=\"{}\"/>{}</g>\n",
                     color, stroke_class(line.stroke), escape(line.name), color, path_of(line, axes),
                     line.stroke == Stroke::faint ? "" : dots_of(line, axes));
}

}  // namespace

bool has_points(const Line& line) { return std::any_of(line.points.begin(), line.points.end(), visible); }

bool has_points(const Chart& chart) {
  return std::any_of(chart.lines.begin(), chart.lines.end(), [](const Line& line) { return has_points(line); });
}

const char* stroke_class(Stroke stroke) {
  switch (stroke) {
    case Stroke::solid:
      return "";
    case Stroke::dashed:
      return " dashed";
    case Stroke::dotted:
      return " dotted";
    case Stroke::faint:
      return " faint";
  }
  return "";
}

Plot make_plot(const Chart& chart) {
  Plot plot;
  plot.axes = make_axes(chart);
  plot.elements = y_ticks(plot.axes);
  plot.elements += x_ticks(plot.axes, chart.x_label);
  for (const Line& line : chart.lines) plot.elements += draw_line(line, plot.axes);
  plot.hint = chart.hint;
  if (plot.axes.y.log) plot.hint += plot.hint.empty() ? "log scale" : ", log scale";
  return plot;
}

std::vector<const Line*> legend_lines(const Chart& chart) {
  std::vector<const Line*> lines;
  for (const Line& line : chart.lines) {
    if (line.stroke != Stroke::faint && has_points(line)) lines.push_back(&line);
  }
  return lines.size() > 1 ? lines : std::vector<const Line*>{};
}

}  // namespace convssm::report
