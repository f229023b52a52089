// A line chart as inline SVG with its title and legend, coloured by the style sheet.
#pragma once

#include <string>
#include <vector>

#include "convssm/report/points.h"

namespace convssm::report {

enum class Scale {
  linear,
  automatic,    // logarithmic if all values are positive and span a factor of 15
  logarithmic,  // if all values are positive
};

enum class Stroke { solid, dashed, dotted, faint };

struct Line {
  std::string name;
  std::vector<Point> points;
  int color = 0;  // lines of one colour belong together; a faint one is not in the legend
  Stroke stroke = Stroke::solid;
};

struct Chart {
  std::string id;
  std::string title;
  std::string hint;  // behind the title, small: a unit or a convention
  std::string x_label;
  Scale scale = Scale::linear;
  std::vector<Line> lines;
  Scale x_scale = Scale::linear;
};

// A <figure>; "" if no line has a finite value. Gaps stay gaps; few points get dots.
std::string draw(const Chart& chart);

}  // namespace convssm::report
