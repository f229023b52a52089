// The ray caster against a tracer that meets every wall with every ray, in double, one pixel at a time.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "convssm/worlds/maze.h"
#include "convssm/worlds/record.h"

namespace convssm::worlds {
namespace {

struct TracedRay {
  double depth = 1e9;
  Color color;
  double light = 1;
  uint32_t id = 0;
};

// A ray of the frame: column and row are in rays, from the upper left corner.
TracedRay trace_maze(const Maze& maze, const Pose& pose, double column, double row) {
  const View& view = maze.view();
  const double angle = pose.heading * std::numbers::pi / 12, wide = static_cast<double>(view.width * view.samples);
  const double focal = wide / (2 * std::tan(view.fov * std::numbers::pi / 360));
  const double side = (column - wide / 2) / focal, down = (row - wide / 2) / focal;
  const double dx = std::cos(angle) - side * std::sin(angle), dy = std::sin(angle) + side * std::cos(angle);
  const double x = static_cast<double>(pose.x) / 65536, y = static_cast<double>(pose.y) / 65536;
  const auto level_of = [](double cells) {
    return cells * 64 <= 1 ? 0 : std::min(6, static_cast<int>(std::log2(cells * 64) + 0.5));
  };
  TracedRay best;
  const int64_t n = maze.layout().size();
  if (down != 0) {  // floor and ceiling
    const double t = 0.5 / std::abs(down), px = x + t * dx, py = y + t * dy;
    if (px > 0 && py > 0 && px < static_cast<double>(n) && py < static_cast<double>(n)) {
      const int64_t cell = static_cast<int64_t>(py) * n + static_cast<int64_t>(px);
      const Texture& texture = down > 0 ? maze.floor(cell) : maze.ceiling(cell);
      best = {t, texture.at(px - std::floor(px), py - std::floor(py), level_of(t / focal * std::sqrt(2 * t))), 1,
              maze.ground_id(cell)};
    }
  }
  for (int64_t cell = 0; cell < maze.layout().cells(); ++cell) {
    for (int d = 0; d < 4; ++d) {
      if (maze.layout().open(cell, d)) continue;
      const auto left = static_cast<double>(cell % n), top = static_cast<double>(cell / n);
      const double towards = d == 0 ? dx : d == 1 ? dy : d == 2 ? -dx : -dy;
      if (towards <= 0) continue;  // only from inside the cell
      const double t = d % 2 == 0 ? (left + (d == 0 ? 1 : 0) - x) / dx : (top + (d == 1 ? 1 : 0) - y) / dy;
      if (t <= 0 || t >= best.depth) continue;
      const double along = d % 2 == 0 ? y + t * dy - top : x + t * dx - left, height = 0.5 + t * down;
      if (along < 0 || along >= 1 || height < 0 || height >= 1) continue;
      const double u = d == 0 || d == 3 ? along : 1 - along;
      best = {t, maze.wall(cell, d).at(u, height, level_of(t / focal)), d % 2 == 0 ? 1.0 : 0.8, Maze::wall_id(cell, d)};
    }
  }
  best.light *= 1 / (1 + 0.03 * best.depth * best.depth);
  return best;
}

TEST(MazeRender, AgreesWithAPlainTracer) {
  for (const int64_t samples : {1, 2}) {
    MazeOptions options;
    options.view = {.width = 32, .height = 32, .fov = 85, .samples = samples};
    const auto maze = std::make_shared<Maze>(options, 11, "train", 3);
    Recorded walk = record_poses(maze, 0, 100);
    for (Pose& pose : walk.poses) pose.x += 1700, pose.y += 3100;  // in the middle, edges of walls lie on the diagonals
    std::vector<uint8_t> frame(static_cast<size_t>(maze->view().bytes()));
    int64_t different = 0, rays_off = 0, values = 0;
    for (size_t t = 0; t < walk.poses.size(); t += 9) {
      Sight sight;
      maze->render(walk.poses[t], frame, &sight);
      std::map<uint32_t, int64_t> rays;
      for (int64_t row = 0; row < 32; ++row) {
        for (int64_t column = 0; column < 32; ++column) {
          double mean[3] = {0, 0, 0};
          for (int64_t s = 0; s < samples * samples; ++s) {
            const TracedRay ray =
                trace_maze(*maze, walk.poses[t], static_cast<double>(column * samples + s % samples) + 0.5,
                           static_cast<double>(row * samples + s / samples) + 0.5);
            const double share = ray.light / static_cast<double>(samples * samples);
            mean[0] += share * ray.color.r, mean[1] += share * ray.color.g, mean[2] += share * ray.color.b;
            ++rays[ray.id];
          }
          for (size_t c = 0; c < 3; ++c) {
            const double found = frame[static_cast<size_t>(3 * (row * 32 + column)) + c];
            different += std::abs(found - mean[c]) > 3 ? 1 : 0;
            ++values;
          }
        }
      }
      for (const Surface& s : sight) rays_off += std::abs(static_cast<int64_t>(s.rays) - rays[s.id]);
    }
    EXPECT_LT(static_cast<double>(different), 0.003 * static_cast<double>(values)) << different;
    EXPECT_LT(static_cast<double>(rays_off), 0.003 * static_cast<double>(values * samples * samples / 3)) << rays_off;
  }
}

TEST(MazeRender, AFrameOfAnotherSizeIsRefused) {
  const Maze maze({}, 1, "train", 0);
  std::vector<uint8_t> small(10);
  EXPECT_THROW(maze.render(maze.start(), small, nullptr), std::exception);
}

}  // namespace
}  // namespace convssm::worlds
