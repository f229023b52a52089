#include "convssm/worlds/map_picture.h"

#include <algorithm>
#include <cmath>

#include "convssm/worlds/pose.h"

namespace convssm::worlds {
namespace {

void set_pixel(io::Image& image, int64_t x, int64_t y, Color color) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
  uint8_t* pixel = image.pixels.data() + 3 * (y * image.width + x);
  pixel[0] = color.r, pixel[1] = color.g, pixel[2] = color.b;
}

}  // namespace

io::Image blank_picture(int64_t side, Color color) {
  io::Image image{side, side, 3, std::vector<uint8_t>(static_cast<size_t>(3 * side * side))};
  const auto size = static_cast<double>(side);
  fill_box(image, 0, 0, size, size, color);
  return image;
}

void fill_box(io::Image& image, double left, double top, double right, double bottom, Color color) {
  const auto pixel = [](double place) { return static_cast<int64_t>(std::lround(place)); };
  for (int64_t y = pixel(top); y < pixel(bottom); ++y) {
    for (int64_t x = pixel(left); x < pixel(right); ++x) set_pixel(image, x, y, color);
  }
}

void draw_line(io::Image& image, double x0, double y0, double x1, double y1, double thickness, Color color) {
  const int steps = 1 + static_cast<int>(2 * std::hypot(x1 - x0, y1 - y0));
  const double half = thickness / 2;
  for (int i = 0; i <= steps; ++i) {
    const double x = x0 + (x1 - x0) * i / steps, y = y0 + (y1 - y0) * i / steps;
    fill_box(image, x - half, y - half, x + half, y + half, color);
  }
}

void draw_walker(io::Image& image, double x, double y, int heading, double size, Color color) {
  const double c = cosine(heading), s = sine(heading);
  for (double ahead = -0.6; ahead <= 1; ahead += 0.5 / size) {  // a triangle, row by row
    const double half = 0.65 * (1 - ahead) / 1.6;
    const auto at = [&](double side) {
      return std::pair{x + size * (ahead * c - side * s), y + size * (ahead * s + side * c)};
    };
    const auto [ax, ay] = at(-half);
    const auto [bx, by] = at(half);
    draw_line(image, ax, ay, bx, by, 1, color);
  }
}

}  // namespace convssm::worlds
