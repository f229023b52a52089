// Draws strokes as a pen does: smooth curves through points, of varying width, with soft edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convssm::data {

struct Point {
  double x = 0, y = 0;
  bool corner = false;  // the curve bends sharply here
};

using Stroke = std::vector<Point>;

// A smooth curve through the points (Catmull-Rom between corners), `steps` lines between each two of them.
Stroke smooth(const Stroke& points, int steps);

// A grey image, 0 paper, 255 ink; coordinates in pixels, (0,0) the upper left corner of the upper left pixel.
struct Canvas {
  explicit Canvas(int64_t width_and_height) : size(width_and_height), pixels(static_cast<size_t>(size * size)) {}
  int64_t size;
  std::vector<uint8_t> pixels;  // [size, size]
};

// The straight line a-b with a round pen of radius ra at a, rb at b. The darkest ink wins where lines meet.
void draw_line(Canvas& canvas, const Point& a, const Point& b, double ra, double rb);

}  // namespace convssm::data
