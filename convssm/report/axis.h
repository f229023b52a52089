// One axis of a chart: a range of values, linear or logarithmic, the pixels it covers, and its labelled ticks.
#pragma once

#include <string>
#include <vector>

namespace convssm::report {

struct Tick {
  double value;
  std::string label;
};

struct Axis {
  double low = 0, high = 1;  // of the values, or of their log10
  bool log = false;
  double begin = 0, end = 1;  // pixels of low and high

  double pixel(double value) const;
  std::vector<Tick> ticks(int wanted) const;
};

// The axis for values from least to most with some room around; `zero_near`: a range that begins near 0 begins at 0.
Axis linear_axis(double least, double most, bool zero_near, double room);

// For positive values.
Axis log_axis(double least, double most);

}  // namespace convssm::report
