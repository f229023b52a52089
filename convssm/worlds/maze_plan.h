// Ways through a maze as actions: along a list of cells, round a loop, through all cells of a region.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convssm/worlds/maze_layout.h"

namespace convssm::worlds {

// How far an action goes, and so how many there are to a cell and a quarter turn. eighths, quarters: of a cell, and turns of 15 and
// 30 degrees; corners are arcs. cells: from middle to middle, and quarter turns in place.
enum class MazeMoves { eighths, quarters, cells };

struct MazeSteps {
  explicit MazeSteps(MazeMoves moves = MazeMoves::eighths);

  int64_t cell, quarter_turn;  // actions
  bool arcs;
};

// A walker in the middle of a cell, looking along a direction.
struct MazeSpot {
  int64_t cell = 0;
  int direction = 0;
};

// The actions that lead from the spot along neighbouring cells, of which the first is that of the spot: turns in place at
// both ends and where the way goes back, arcs round corners where there are such. The spot becomes where they end.
std::vector<int64_t> follow(const MazeLayout& maze, const MazeSteps& steps, std::span<const int64_t> cells,
                            MazeSpot& spot);

// Cells of a way from a cell to another one and back over other edges, of at most `most` actions, the longest of some
// that were tried; empty if none was found. The walker should start looking along its last step.
std::vector<int64_t> find_loop(const MazeLayout& maze, const MazeSteps& steps, int64_t most, Stream random);

// A way through the cells of a region, from its first one and back to it, depth first.
std::vector<int64_t> tour(const MazeLayout& maze, std::span<const int64_t> region);

}  // namespace convssm::worlds
