// One quarter of the circle is computed, the others are its mirror images: that makes opposite steps cancel.
#include "convssm/worlds/pose.h"

#include <cmath>
#include <numbers>

namespace convssm::worlds {
namespace {

constexpr int kQuarter = headings / 4;

double first_quarter(int heading) {  // the sine of 0 .. kQuarter
  if (heading == kQuarter) return 1;
  return std::sin(2 * std::numbers::pi * heading / headings);
}

int64_t rounded(double length, double part) {
  return std::llround(length * static_cast<double>(unit) * part);  // symmetric about 0
}

}  // namespace

double sine(int heading) {
  const int h = wrap_heading(heading), in_half = h % (2 * kQuarter);
  const double value = first_quarter(in_half <= kQuarter ? in_half : 2 * kQuarter - in_half);
  return h < 2 * kQuarter ? value : -value;
}

double cosine(int heading) { return sine(heading + kQuarter); }

double radians(int heading) { return 2 * std::numbers::pi * wrap_heading(heading) / headings; }

Offset ahead(int heading, double length) { return {rounded(length, cosine(heading)), rounded(length, sine(heading))}; }

Offset along_arc(int heading, int turn, double radius) {
  // The centre lies a quarter turn to that side; what is gone is the difference of the two spokes.
  const Offset before = ahead(heading + turn * kQuarter, radius),
               after = ahead(heading + turn + turn * kQuarter, radius);
  return {before.x - after.x, before.y - after.y};
}

}  // namespace convssm::worlds
