// Depth-first growth makes the corridors, breadth-first search the paths.
#include "convssm/worlds/maze_layout.h"

#include <algorithm>
#include <array>

#include "convssm/base/error.h"

namespace convssm::worlds {
namespace {

constexpr int64_t kShortestLoop = 6, kLongestLoop = 14;  // cells of the loops that are opened first
constexpr std::array<int64_t, 4> kEast = {1, 0, -1, 0}, kSouth = {0, 1, 0, -1};

template <typename T>
void shuffle(std::vector<T>& items, Stream& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

void grow_corridors(MazeLayout& maze, Stream& random) {
  std::vector<bool> reached(static_cast<size_t>(maze.cells()));
  std::vector<int64_t> stack = {static_cast<int64_t>(random.below(static_cast<uint64_t>(maze.cells())))};
  reached[static_cast<size_t>(stack[0])] = true;
  while (!stack.empty()) {
    // Mostly the newest cell goes on; now and then an older one, so that corridors branch.
    const size_t at = random.uniform() < 0.85 ? stack.size() - 1 : random.below(stack.size());
    std::vector<int> ways;
    for (int d = 0; d < 4; ++d) {
      const int64_t next = maze.neighbour(stack[at], d);
      if (next >= 0 && !reached[static_cast<size_t>(next)]) ways.push_back(d);
    }
    if (ways.empty()) {
      stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const int way = ways[random.below(ways.size())];
    const int64_t next = maze.neighbour(stack[at], way);
    maze.set_open(stack[at], way, true);
    reached[static_cast<size_t>(next)] = true;
    stack.push_back(next);
  }
}

struct ClosedWall {
  int64_t cell;
  int direction;
  int64_t loop;  // cells of the loop that opening it closes; 0: more than kLongestLoop
};

}  // namespace

MazeLayout::MazeLayout(int64_t size) : size_(size), doors_(static_cast<size_t>(size * size)) {}

int64_t MazeLayout::neighbour(int64_t cell, int direction) const {
  const int64_t x = cell % size_ + kEast[static_cast<size_t>(direction)];
  const int64_t y = cell / size_ + kSouth[static_cast<size_t>(direction)];
  return x >= 0 && y >= 0 && x < size_ && y < size_ ? y * size_ + x : -1;
}

int MazeLayout::direction(int64_t from, int64_t to) const {
  for (int d = 0; d < 4; ++d) {
    if (neighbour(from, d) == to) return d;
  }
  fail(ErrorKind::usage, "[maze] cells {} and {} are not neighbours", from, to);
}

void MazeLayout::set_open(int64_t cell, int direction, bool open) {
  const int64_t other = neighbour(cell, direction);
  if (other < 0) fail(ErrorKind::usage, "[maze] the outer wall of cell {} cannot be opened", cell);
  const auto set = [&](int64_t c, int d) {
    uint8_t& doors = doors_[static_cast<size_t>(c)];
    doors = static_cast<uint8_t>(open ? doors | (1 << d) : doors & ~(1 << d));
  };
  set(cell, direction);
  set(other, (direction + 2) % 4);
}

uint64_t MazeLayout::key() const {
  const std::string_view walls(reinterpret_cast<const char*>(doors_.data()), doors_.size());
  return Stream(static_cast<uint64_t>(size_), walls).next();
}

std::vector<int64_t> MazeLayout::distances(int64_t from, int64_t most) const {
  std::vector<int64_t> steps(doors_.size(), -1), queue = {from};
  steps[static_cast<size_t>(from)] = 0;
  for (size_t i = 0; i < queue.size() && steps[static_cast<size_t>(queue[i])] < most; ++i) {
    for (int d = 0; d < 4; ++d) {
      if (!open(queue[i], d)) continue;
      const int64_t next = neighbour(queue[i], d);
      if (steps[static_cast<size_t>(next)] >= 0) continue;
      steps[static_cast<size_t>(next)] = steps[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(next);
    }
  }
  return steps;
}

std::vector<int64_t> MazeLayout::path(int64_t from, int64_t to, Stream& random) const {
  const std::vector<int64_t> left = distances(to);
  if (left[static_cast<size_t>(from)] < 0) return {};
  std::vector<int64_t> path = {from};
  while (path.back() != to) {
    std::vector<int64_t> nearer;
    for (int d = 0; d < 4; ++d) {
      if (!open(path.back(), d)) continue;
      const int64_t next = neighbour(path.back(), d);
      if (left[static_cast<size_t>(next)] + 1 == left[static_cast<size_t>(path.back())]) nearer.push_back(next);
    }
    path.push_back(nearer[random.below(nearer.size())]);
  }
  return path;
}

MazeLayout random_maze(int64_t size, double loops, int64_t least, Stream random) {
  MazeLayout maze(size);
  grow_corridors(maze, random);
  std::vector<ClosedWall> walls;
  for (int64_t cell = 0; cell < maze.cells(); ++cell) {
    const std::vector<int64_t> steps = maze.distances(cell, kLongestLoop - 1);
    for (const int d : {0, 1}) {
      const int64_t other = maze.neighbour(cell, d);
      if (other >= 0 && !maze.open(cell, d)) walls.push_back({cell, d, steps[static_cast<size_t>(other)] + 1});
    }
  }
  shuffle(walls, random);
  std::ranges::stable_partition(walls,
                                [](const ClosedWall& w) { return w.loop >= kShortestLoop && w.loop <= kLongestLoop; });
  const auto wanted = static_cast<int64_t>(loops * static_cast<double>(walls.size()) + 0.5);
  const auto count = std::min<int64_t>(std::max(wanted, least), static_cast<int64_t>(walls.size()));
  for (int64_t i = 0; i < count; ++i)
    maze.set_open(walls[static_cast<size_t>(i)].cell, walls[static_cast<size_t>(i)].direction, true);
  return maze;
}

}  // namespace convssm::worlds
