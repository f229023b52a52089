// Steps are 1, 2 or 5 times a power of ten, and ticks whole multiples of the step, not sums of it, so that no error
// adds up. Values that are all nearly equal still get a range.
#include "convssm/report/axis.h"

#include <algorithm>
#include <cmath>

#include "convssm/report/numbers.h"

namespace convssm::report {
namespace {

// The one of 1, 2, 5, 10, ... that gives about `wanted` ticks.
double nice_step(double range, int wanted) {
  const double raw = range / std::max(1, wanted - 1);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.7) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(double low, double high, int wanted) {
  std::vector<Tick> out;
  const double step = nice_step(high - low, wanted);
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    out.push_back({i * step, tick_label(i * step, step)});
  }
  return out;
}

// Powers of ten, thinned out over many decades; 1 and 3, or 1, 2 and 5, over few.
std::vector<Tick> log_ticks(double low, double high, int wanted) {
  std::vector<Tick> out;
  const double decades = high - low;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / wanted)));
  for (int decade = static_cast<int>(std::floor(low)); decade <= static_cast<int>(std::ceil(high)); ++decade) {
    for (const double factor : {1.0, 2.0, 3.0, 5.0}) {
      if (factor > 1 && (factor == 3) != (decades > 1.6)) continue;
      if (factor > 1 && decades > 3.2) continue;
      const double value = factor * std::pow(10.0, decade), place = std::log10(value);
      if (place < low - 1e-9 || place > high + 1e-9 || decade % stride != 0) continue;
      out.push_back({value, tick_label(value, std::pow(10.0, decade))});
    }
  }
  return out;
}

}  // namespace

double Axis::pixel(double value) const {
  const double place = log ? std::log10(value) : value;
  return begin + (place - low) / (high - low) * (end - begin);
}

std::vector<Tick> Axis::ticks(int wanted) const {
  return log ? log_ticks(low, high, wanted) : linear_ticks(low, high, wanted);
}

Axis linear_axis(double least, double most, bool zero_near, double room) {
  double range = most - least;
  if (range <= 1e-9 * std::max(std::abs(least), std::abs(most))) {
    range = least == 0 ? 1 : std::abs(least) * 0.2;
    room = 0.5;
  }
  const bool from_zero = zero_near && least >= 0 && least < 0.3 * most;
  return {from_zero ? 0 : least - room * range, most + room * range, false, 0, 1};
}

Axis log_axis(double least, double most) {
  const double low = std::log10(least), high = std::log10(most);
  const double room = std::max(0.05 * (high - low), 0.02);
  return {low - room, high + room, true, 0, 1};
}

}  // namespace convssm::report
