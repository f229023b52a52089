// Maps of both worlds: the ground in its own colours, the path, the walker.
#include <algorithm>

#include "convssm/worlds/map_picture.h"
#include "convssm/worlds/maze.h"
#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

constexpr Color kPath = {255, 214, 60}, kWalker = {230, 30, 40}, kWallColor = {40, 40, 46}, kNowhere = {70, 70, 78};

Color mean_color(const Texture& texture) { return *texture.level(texture_levels - 1); }

Color lighter(Color c) {
  const auto one = [](uint8_t x) { return static_cast<uint8_t>((x + 255) / 2); };
  return {one(c.r), one(c.g), one(c.b)};
}

Color shaded(Color c, double light) {
  const auto one = [light](uint8_t x) { return static_cast<uint8_t>(std::clamp(light * x, 0.0, 255.0)); };
  return {one(c.r), one(c.g), one(c.b)};
}

}  // namespace

io::Image Maze::map(std::span<const Pose> path, int64_t side) const {
  io::Image image = blank_picture(side, kNowhere);
  const double cell_size = static_cast<double>(side) / static_cast<double>(layout_.size()),
               thick = std::max(1.0, cell_size / 10);
  const auto place = [&](int64_t position) { return cells(position) * cell_size; };
  for (int64_t cell = 0; cell < layout_.cells(); ++cell) {
    const double x = static_cast<double>(cell % layout_.size()) * cell_size,
                 y = static_cast<double>(cell / layout_.size()) * cell_size;
    const bool reached =
        layout_.open(cell, 0) || layout_.open(cell, 1) || layout_.open(cell, 2) || layout_.open(cell, 3);
    if (reached) fill_box(image, x, y, x + cell_size, y + cell_size, lighter(mean_color(floor(cell))));
  }
  for (size_t i = 1; i < path.size(); ++i) {
    draw_line(image, place(path[i - 1].x), place(path[i - 1].y), place(path[i].x), place(path[i].y), thick, kPath);
  }
  for (int64_t cell = 0; cell < layout_.cells(); ++cell) {
    const double x = static_cast<double>(cell % layout_.size()) * cell_size,
                 y = static_cast<double>(cell / layout_.size()) * cell_size;
    for (int d = 0; d < 4; ++d) {
      if (layout_.open(cell, d)) continue;
      const double x0 = d == 0 ? x + cell_size : x, x1 = d == 2 ? x : x + cell_size;
      const double y0 = d == 1 ? y + cell_size : y, y1 = d == 3 ? y : y + cell_size;
      draw_line(image, x0, y0, x1, y1, thick, kWallColor);
    }
  }
  if (!path.empty())
    draw_walker(image, place(path.back().x), place(path.back().y), path.back().heading, cell_size / 2.6, kWalker);
  return image;
}

// The surroundings of the start, which stay where they are while the walker moves; the walk may leave them.
io::Image Terrain::map(std::span<const Pose> path, int64_t side) const {
  constexpr double kBlocks = 96;
  io::Image image = blank_picture(side, kNowhere);
  const double block_size = static_cast<double>(side) / kBlocks;
  const double left = cells(start_.x) - kBlocks / 2, top = cells(start_.y) - kBlocks / 2;
  for (int64_t py = 0; py < side; ++py) {
    for (int64_t px = 0; px < side; ++px) {
      const auto i = static_cast<int64_t>(left + (static_cast<double>(px) + 0.5) / block_size + 256);
      const auto j = static_cast<int64_t>(top + (static_cast<double>(py) + 0.5) / block_size + 256);
      const Column& c = ground_.at(i, j);
      const Material material = c.has_leaves() ? c.leaf : c.surface;
      const double slope = c.height - ground_.at(i - 1, j - 1).height;
      const Color color = shaded(ground_.color(material), std::clamp(0.75 + 0.02 * c.height + 0.1 * slope, 0.4, 1.3));
      fill_box(image, static_cast<double>(px), static_cast<double>(py), static_cast<double>(px + 1),
               static_cast<double>(py + 1), color);
    }
  }
  // Over the edge of the landscape the path goes on beside it.
  const auto place = [&](int64_t position, int64_t from) {
    constexpr int64_t whole = Ground::side * unit;
    const int64_t apart = ((position - from + whole / 2) & (whole - 1)) - whole / 2;
    return (cells(apart) + kBlocks / 2) * block_size;
  };
  const auto x = [&](const Pose& p) { return place(p.x, start_.x); };
  const auto y = [&](const Pose& p) { return place(p.y, start_.y); };
  for (size_t i = 1; i < path.size(); ++i) {
    draw_line(image, x(path[i - 1]), y(path[i - 1]), x(path[i]), y(path[i]), std::max(1.0, block_size * 0.8), kPath);
  }
  if (!path.empty()) draw_walker(image, x(path.back()), y(path.back()), path.back().heading, 3 * block_size, kWalker);
  return image;
}

}  // namespace convssm::worlds
