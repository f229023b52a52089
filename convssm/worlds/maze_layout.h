// The plan of a maze: size x size cells with thin walls between them, all connected. Cells are numbered row by row;
// directions are 0 east, 1 south, 2 west, 3 north, a quarter turn each.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/base/random.h"

namespace convssm::worlds {

class MazeLayout {
 public:
  explicit MazeLayout(int64_t size);  // all walls closed

  int64_t size() const { return size_; }
  int64_t cells() const { return size_ * size_; }
  bool open(int64_t cell, int direction) const { return (doors_[static_cast<size_t>(cell)] >> direction & 1) != 0; }
  void set_open(int64_t cell, int direction, bool open);  // of both cells; not in the outer wall
  int64_t neighbour(int64_t cell, int direction) const;   // -1 outside
  int direction(int64_t from, int64_t to) const;          // of neighbours
  uint64_t key() const;                                   // a hash of all walls

  // Steps to every cell; -1: not to be reached, or not in `most` steps.
  std::vector<int64_t> distances(int64_t from, int64_t most = INT64_MAX) const;

  // A shortest path, both ends included, chosen at random among those of its length. Empty if there is none.
  std::vector<int64_t> path(int64_t from, int64_t to, Stream& random) const;

 private:
  int64_t size_;
  std::vector<uint8_t> doors_;  // of each cell a bit for every direction that is open
};

// A random maze without loops, of long corridors, in which then a share `loops` of the walls is taken away: at least
// `least`, those first that close a loop of 6 to 14 cells.
MazeLayout random_maze(int64_t size, double loops, int64_t least, Stream random);

}  // namespace convssm::worlds
