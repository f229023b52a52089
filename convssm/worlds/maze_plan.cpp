// With arcs, a corner is one from the middle of one side to that of the next, of as many actions as a quarter turn in place.
#include "convssm/worlds/maze_plan.h"

#include <algorithm>
#include <functional>

#include "convssm/worlds/maze.h"

namespace convssm::worlds {
namespace {

constexpr int kLoopTries = 60;

void append(std::vector<int64_t>& plan, int64_t times, MazeAction action) {
  plan.insert(plan.end(), static_cast<size_t>(times), static_cast<int64_t>(action));
}

class Way {
 public:
  explicit Way(const MazeSteps& steps) : steps_(steps) {}

  void forward(int64_t actions) { append(plan, actions, MazeAction::forward); }

  void turn(int from, int to) {
    const int quarters = (to - from + 4) % 4;  // to the right
    if (quarters == 1) append(plan, steps_.quarter_turn, MazeAction::right);
    if (quarters == 2) append(plan, 2 * steps_.quarter_turn, MazeAction::left);
    if (quarters == 3) append(plan, steps_.quarter_turn, MazeAction::left);
  }

  // From one side of a cell to another, or to the middle of the next.
  void cross(int from, int to) {
    const int quarters = (to - from + 4) % 4;
    if (steps_.arcs && quarters == 1) return append(plan, steps_.quarter_turn, MazeAction::forward_right);
    if (steps_.arcs && quarters == 3) return append(plan, steps_.quarter_turn, MazeAction::forward_left);
    forward(steps_.cell / 2);
    turn(from, to);
    forward(steps_.cell - steps_.cell / 2);
  }

  std::vector<int64_t> plan;

 private:
  const MazeSteps& steps_;
};

int64_t lap_length(const MazeLayout& maze, const MazeSteps& steps, std::span<const int64_t> loop) {
  MazeSpot spot{loop[0], maze.direction(loop[loop.size() - 2], loop[0])};
  return static_cast<int64_t>(follow(maze, steps, loop, spot).size());
}

}  // namespace

MazeSteps::MazeSteps(MazeMoves moves)
    : cell(moves == MazeMoves::eighths    ? 8
           : moves == MazeMoves::quarters ? 4
                                          : 1),
      quarter_turn(moves == MazeMoves::eighths    ? 6
                   : moves == MazeMoves::quarters ? 3
                                                  : 1),
      arcs(moves != MazeMoves::cells) {}

std::vector<int64_t> follow(const MazeLayout& maze, const MazeSteps& steps, std::span<const int64_t> cells,
                            MazeSpot& spot) {
  Way way(steps);
  for (size_t i = 0; i + 1 < cells.size(); ++i) {
    const int direction = maze.direction(cells[i], cells[i + 1]);
    if (i > 0) {
      way.cross(spot.direction, direction);
    } else {
      way.turn(spot.direction, direction);
      way.forward(steps.cell - steps.cell / 2);
    }
    spot = {cells[i + 1], direction};
  }
  if (cells.size() > 1) way.forward(steps.cell / 2);
  return way.plan;
}

std::vector<int64_t> find_loop(const MazeLayout& maze, const MazeSteps& steps, int64_t most, Stream random) {
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
    const int64_t length = lap_length(maze, steps, loop);
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
