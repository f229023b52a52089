// The ray caster of the maze, one column of rays after the other. A ray walks from cell to cell until it meets a wall, at the
// depth t. Rows whose floor would be further away than t show the wall; the others show the floor at their depth, which
// is the same for all columns, and the row as far above the horizon shows the ceiling of the same place.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "convssm/base/error.h"
#include "convssm/worlds/camera.h"
#include "convssm/worlds/maze.h"

namespace convssm::worlds {
namespace {

struct Hit {
  int64_t cell = 0;
  int direction = 0;
  double depth = 0, along = 0;  // along the wall, from its left end, in [0,1]
};

// The wall that the ray from (x, y) along (dx, dy) meets first; the depth is in lengths of (dx, dy).
Hit cast_ray(const MazeLayout& maze, double x, double y, double dx, double dy) {
  auto column = static_cast<int64_t>(x), row = static_cast<int64_t>(y);
  constexpr double never = std::numeric_limits<double>::infinity();
  const double each_x = dx != 0 ? std::abs(1 / dx) : never, each_y = dy != 0 ? std::abs(1 / dy) : never;
  double next_x = dx > 0   ? (static_cast<double>(column + 1) - x) * each_x
                  : dx < 0 ? (x - static_cast<double>(column)) * each_x
                           : never;
  double next_y = dy > 0   ? (static_cast<double>(row + 1) - y) * each_y
                  : dy < 0 ? (y - static_cast<double>(row)) * each_y
                           : never;
  for (;;) {
    const int64_t cell = row * maze.size() + column;
    if (next_x < next_y) {
      const int direction = dx > 0 ? 0 : 2;
      if (!maze.open(cell, direction)) {
        const double place = y + next_x * dy - static_cast<double>(row);
        return {cell, direction, next_x, dx > 0 ? place : 1 - place};
      }
      column += dx > 0 ? 1 : -1;
      next_x += each_x;
    } else {
      const int direction = dy > 0 ? 1 : 3;
      if (!maze.open(cell, direction)) {
        const double place = x + next_y * dx - static_cast<double>(column);
        return {cell, direction, next_y, dy > 0 ? 1 - place : place};
      }
      row += dy > 0 ? 1 : -1;
      next_y += each_y;
    }
  }
}

int fixed_shade(double shade) { return static_cast<int>(256 * shade); }

// What is the same for all columns, by the distance from the horizon in rows.
struct FloorRow {
  float depth;
  int level, shade;
};

std::vector<FloorRow> floor_rows(const Camera& camera, const Maze& maze) {
  std::vector<FloorRow> rows;
  for (int64_t i = 0; i < camera.rows() / 2; ++i) {
    const double depth = 0.5 * camera.focal() / (static_cast<double>(i) + 0.5);
    rows.push_back({static_cast<float>(depth), level_for(depth / camera.focal() * std::sqrt(2 * depth)),
                    fixed_shade(maze.shade(depth))});
  }
  return rows;
}

}  // namespace

void Maze::render(const Pose& pose, std::span<uint8_t> rgb, Sight* sight) const {
  const Camera camera(options_.view, pose.heading, rgb);
  const std::vector<FloorRow> below = floor_rows(camera, *this);
  const double x = cells(pose.x), y = cells(pose.y);
  const int64_t rows = camera.rows(), half = rows / 2, side = layout_.size();
  std::vector<uint32_t> rays(sight != nullptr ? static_cast<size_t>(surfaces()) : 0);
  ColumnBuffer buffer(options_.view, rgb);
  for (int64_t column = 0; column < camera.columns(); ++column) {
    const auto [dx, dy] = camera.ray(column);
    const Hit hit = cast_ray(layout_, x, y, dx, dy);
    // Rows half - height .. half + height - 1 show the wall: their floor lies beyond it.
    const double reach = 0.5 * camera.focal() / hit.depth;
    const auto height = std::min<int64_t>(half, static_cast<int64_t>(std::ceil(reach - 0.5)));
    const int level = level_for(hit.depth / camera.focal()), texels = Texture::size >> level;
    const auto u = std::min(static_cast<int>(hit.along * texels), texels - 1);
    const Color* wall_texels = wall(hit.cell, hit.direction).level(level) + std::max(u, 0);
    const int light = fixed_shade(shade(hit.depth) * (hit.direction % 2 == 0 ? 1.0 : 0.8));
    const double down = texels * hit.depth / camera.focal();  // texels for each row
    double v = 0.5 * texels + (0.5 - static_cast<double>(height)) * down;
    for (int64_t row = half - height; row < half + height; ++row, v += down) {
      buffer.add(row, wall_texels[std::clamp(static_cast<int>(v), 0, texels - 1) * texels], light);
    }
    if (sight != nullptr) rays[wall_id(hit.cell, hit.direction)] += static_cast<uint32_t>(2 * height);
    const auto fx = static_cast<float>(x), fy = static_cast<float>(y), fdx = static_cast<float>(dx),
               fdy = static_cast<float>(dy);
    for (int64_t i = height; i < half; ++i) {
      const FloorRow& at = below[static_cast<size_t>(i)];
      const float px = fx + at.depth * fdx, py = fy + at.depth * fdy;
      const auto cx = std::clamp<int64_t>(static_cast<int64_t>(px), 0, side - 1),
                 cy = std::clamp<int64_t>(static_cast<int64_t>(py), 0, side - 1);
      const int64_t cell = cy * side + cx;
      const int size = Texture::size >> at.level;
      const auto texel = [size](float place) {
        return std::clamp(static_cast<int>(place * static_cast<float>(size)), 0, size - 1);
      };
      const int place = texel(py - static_cast<float>(cy)) * size + texel(px - static_cast<float>(cx));
      buffer.add(half + i, floor(cell).level(at.level)[place], at.shade);
      buffer.add(half - 1 - i, ceiling(cell).level(at.level)[place], at.shade);
      if (sight != nullptr) rays[ground_id(cell)] += 2;
    }
    buffer.next_column();
  }
  if (sight != nullptr) *sight = to_sight(rays);
}

}  // namespace convssm::worlds
