// The pen: curves through points, and ink where the pen passes, with an edge one pixel soft.
#include "convssm/data/pen.h"

#include <algorithm>
#include <cmath>

namespace convssm::data {
namespace {

// Between p1 and p2, with p0 and p3 their neighbours.
Point catmull_rom(const Point& p0, const Point& p1, const Point& p2, const Point& p3, double t) {
  const auto along = [t](double a, double b, double c, double d) {
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
  };
  return {along(p0.x, p1.x, p2.x, p3.x), along(p0.y, p1.y, p2.y, p3.y)};
}

// The neighbour beyond the end of a smooth section: the mirror image of the one inside.
Point beyond(const Point& end, const Point& inside) { return {2 * end.x - inside.x, 2 * end.y - inside.y}; }

// How much of a pixel at distance d from the middle of a line of radius r is covered.
double coverage(double d, double r) { return std::clamp(r - d + 0.5, 0.0, 1.0); }

}  // namespace

Stroke smooth(const Stroke& points, int steps) {
  Stroke curve;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const Point &a = points[i], &b = points[i + 1];
    const Point before = i == 0 || a.corner ? beyond(a, b) : points[i - 1];
    const Point after = i + 2 == points.size() || b.corner ? beyond(b, a) : points[i + 2];
    for (int step = 0; step < steps; ++step) {
      curve.push_back(catmull_rom(before, a, b, after, static_cast<double>(step) / steps));
    }
  }
  if (!points.empty()) curve.push_back(points.back());
  return curve;
}

void draw_line(Canvas& canvas, const Point& a, const Point& b, double ra, double rb) {
  const double reach = std::max(ra, rb) + 1, last = static_cast<double>(canvas.size) - 1;
  const auto pixel = [last](double v) { return static_cast<int64_t>(std::clamp(std::floor(v), 0.0, last)); };
  const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  for (int64_t row = pixel(std::min(a.y, b.y) - reach); row <= pixel(std::max(a.y, b.y) + reach); ++row) {
    for (int64_t column = pixel(std::min(a.x, b.x) - reach); column <= pixel(std::max(a.x, b.x) + reach); ++column) {
      const double x = static_cast<double>(column) + 0.5 - a.x, y = static_cast<double>(row) + 0.5 - a.y;
      const double t = length2 > 0 ? std::clamp((x * dx + y * dy) / length2, 0.0, 1.0) : 0.0;
      const double ink = coverage(std::hypot(x - t * dx, y - t * dy), ra + t * (rb - ra));
      uint8_t& value = canvas.pixels[static_cast<size_t>(row * canvas.size + column)];
      value = std::max(value, static_cast<uint8_t>(std::lround(255 * ink)));
    }
  }
}

}  // namespace convssm::data
