#include "convssm/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convssm/report/axis.h"
#include "convssm/report/html.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr double kWidth = 520, kHeight = 270, kTop = 10, kRight = 504, kBottom = 228;
constexpr double kCharacter = 6.8;  // width of a digit of a label
constexpr size_t kDots = 30;        // a line of at most this many points shows them

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

struct Axes {
  Axis x, y;
};

// Beyond any use, and the difference of two such values would overflow.
constexpr double kHuge = 1e100;

bool visible(const Point& p) { return std::abs(p.x) < kHuge && std::abs(p.y) < kHuge; }

Axes make_axes(const Chart& chart) {
  Extent x, y;
  for (const Line& line : chart.lines) {
    for (const Point& p : line.points) {
      if (!visible(p)) continue;
      x.add(p.x);
      y.add(p.y);
    }
  }
  const bool log = chart.scale == Scale::automatic && y.least > 0 && y.most >= 15 * y.least;
  Axes axes{linear_axis(x.least, x.most, true, 0),
            log ? log_axis(y.least, y.most) : linear_axis(y.least, y.most, true, 0.05)};
  axes.y.begin = kBottom;
  axes.y.end = kTop;
  axes.x.end = kRight;
  return axes;
}

bool has_points(const Chart& chart) {
  return std::any_of(chart.lines.begin(), chart.lines.end(),
                     [](const Line& line) { return std::any_of(line.points.begin(), line.points.end(), visible); });
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
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", std::min(x, kWidth - half - 1),
                       kBottom + 19, tick.label);
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
    const bool dense = line.points.size() > kDots || line.stroke == Stroke::dashed;
    if (!visible(p) || (dense && !alone(i))) continue;
    out += fmt::format("<circle class=\"dot\" r=\"2.6\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>", axes.x.pixel(p.x),
                       axes.y.pixel(p.y));
  }
  return out;
}

const char* stroke_class(Stroke stroke) {
  return stroke == Stroke::solid ? "" : stroke == Stroke::dashed ? " dashed" : " faint";
}

std::string draw_line(const Line& line, const Axes& axes) {
  const int color = line.color % line_colors;
  return fmt::format("<g class=\"c{}\"><path class=\"line{}\" data-name=\"{}\" data-color=\"c{}\" d=\"{}\"/>{}</g>\n",
                     color, stroke_class(line.stroke), escape(line.name), color, path_of(line, axes),
                     line.stroke == Stroke::faint ? "" : dots_of(line, axes));
}

std::string legend(const Chart& chart) {
  std::string out;
  int entries = 0;
  for (const Line& line : chart.lines) {
    if (line.stroke == Stroke::faint || std::none_of(line.points.begin(), line.points.end(), visible)) continue;
    ++entries;
    out += fmt::format("<span><i class=\"c{}{}\"></i>{}</span>", line.color % line_colors, stroke_class(line.stroke),
                       escape(line.name));
  }
  return entries > 1 ? "<div class=\"legend\">" + out + "</div>" : "";
}

}  // namespace

std::string draw(const Chart& chart) {
  if (!has_points(chart)) return "";
  Axes axes = make_axes(chart);
  const std::string left = y_ticks(axes);
  std::string out =
      fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption><h3>{}</h3>", escape(chart.id), escape(chart.title));
  const std::string hint = chart.hint + (axes.y.log ? (chart.hint.empty() ? "log scale" : ", log scale") : "");
  if (!hint.empty()) out += fmt::format("<span class=\"soft small\">{}</span>", escape(hint));
  out += legend(chart) + "</figcaption>\n";
  out += fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" data-x=\"{}\" data-axes=\"{} {} {} {} {} {} {} {} "
      "{}\">\n",
      kWidth, kHeight, escape(chart.title), escape(chart.x_label), axes.x.low, axes.x.high, axes.x.begin, axes.x.end,
      axes.y.low, axes.y.high, axes.y.begin, axes.y.end, axes.y.log ? 1 : 0);
  out += left + x_ticks(axes, chart.x_label);
  for (const Line& line : chart.lines) out += draw_line(line, axes);
  return out + "</svg>\n</figure>\n";
}

}  // namespace convssm::report
