// The inside of a chart, axes and lines as SVG elements of classes that a style sheet colours. Charts of the page and
// pictures put their title and legend around it.
#pragma once

#include <string>
#include <vector>

#include "convssm/report/axis.h"
#include "convssm/report/chart.h"

namespace convssm::report {

constexpr double kPlotWidth = 520, kPlotHeight = 270;

struct Axes {
  Axis x, y;
};

struct Plot {
  Axes axes;
  std::string elements;
  std::string hint;  // that of the chart and what is to be said of the axes
};

bool has_points(const Line& line);  // one that can be drawn
bool has_points(const Chart& chart);

Plot make_plot(const Chart& chart);  // of a chart that has points

// What a legend names; empty if it would name one line alone.
std::vector<const Line*> legend_lines(const Chart& chart);

// " dashed" and the like, to be appended to a class.
const char* stroke_class(Stroke stroke);

}  // namespace convssm::report
