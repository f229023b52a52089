// Straight on takes 8 steps for a cell, a corner 6 along the arc from the middle of one side to that of the next.
#include "convssm/worlds/maze_plan.h"

#include <algorithm>
#include <functional>

#include "convssm/worlds/maze.h"

namespace convssm::worlds {
namespace {

constexpr int64_t kHalfCell = 4, kQuarterTurn = 6;
constexpr int kLoopTries = 60;

void append(std::vector<int64_t>& plan, int64_t times, MazeAction action) {
  plan.insert(plan.end(), static_cast<size_t>(times), static_cast<int64_t>(action));
}

void turn_in_place(std::vector<int64_t>& plan, int from, int to) {
  const int turn = (to - from + 4) % 4;  // quarters to the right
  if (turn == 1) append(plan, kQuarterTurn, MazeAction::right);
  if (turn == 2) append(plan, 2 * kQuarterTurn, MazeAction::left);
  if (turn == 3) append(plan, kQuarterTurn, MazeAction::left);
}

// From one side of a cell to another.
void cross(std::vector<int64_t>& plan, int from, int to) {
  const int turn = (to - from + 4) % 4;
  if (turn == 1) return append(plan, kQuarterTurn, MazeAction::forward_right);
  if (turn == 3) return append(plan, kQuarterTurn, MazeAction::forward_left);
  append(plan, kHalfCell, MazeAction::forward);
  turn_in_place(plan, from, to);
  append(plan, kHalfCell, MazeAction::forward);
}

int64_t lap_length(const MazeLayout& maze, std::span<const int64_t> loop) {
  MazeSpot spot{loop[0], maze.direction(loop[loop.size() - 2], loop[0])};
  return static_cast<int64_t>(follow(maze, loop, spot).size());
}

}  // namespace

std::vector<int64_t> follow(const MazeLayout& maze, std::span<const int64_t> cells, MazeSpot& spot) {
  std::vector<int64_t> plan;
  for (size_t i = 0; i + 1 < cells.size(); ++i) {
    const int direction = maze.direction(cells[i], cells[i + 1]);
    if (i > 0) {
      cross(plan, spot.direction, direction);
    } else {
      turn_in_place(plan, spot.direction, direction);
      append(plan, kHalfCell, MazeAction::forward);
    }
    spot = {cells[i + 1], direction};
  }
  if (cells.size() > 1) append(plan, kHalfCell, MazeAction::forward);
  return plan;
}

std::vector<int64_t> find_loop(const MazeLayout& maze, int64_t most, Stream random) {
  std::vector<int64_t> best;
  int64_t best_length = 0;
  const auto cells = static_cast<uint64_t>(maze.cells());
  for (int i = 0; i < kLoopTries; ++i) {
    const auto from = static_cast<int64_t>(random.below(cells)), to = static_cast<int64_t>(random.below(cells));
    if (from == to) continue;
    std::vector<int64_t> loop = maze.path(from, to, random);
    MazeLayout rest = maze;
    for (size_t k = 0; k + 1 < loop.size(); ++k) rest.set_open(loop[k], rest.direction(loop[k], loop[k + 1]), false);
    const std::vector<int64_t> back = rest.path(to, from, random);
    if (back.empty()) continue;
    loop.insert(loop.end(), back.begin() + 1, back.end());
    const int64_t length = lap_length(maze, loop);
    if (length > most || length <= best_length) continue;
    best = std::move(loop);
    best_length = length;
  }
  return best;
}

std::vector<int64_t> tour(const MazeLayout& maze, std::span<const int64_t> region) {
  std::vector<bool> left(static_cast<size_t>(maze.cells()));
  for (const int64_t cell : region) left[static_cast<size_t>(cell)] = true;
  std::vector<int64_t> way;
  const std::function<void(int64_t)> visit = [&](int64_t cell) {
    left[static_cast<size_t>(cell)] = false;
    way.push_back(cell);
    for (int d = 0; d < 4; ++d) {
      const int64_t next = maze.open(cell, d) ? maze.neighbour(cell, d) : -1;
      if (next < 0 || !left[static_cast<size_t>(next)]) continue;
      visit(next);
      way.push_back(cell);
    }
  };
  visit(region[0]);
  return way;
}

}  // namespace convssm::worlds
