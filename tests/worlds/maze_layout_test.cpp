// Plans of mazes: connected, paths no longer than those of Floyd and Warshall, ways as actions.
#include "convssm/worlds/maze_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "convssm/worlds/maze_plan.h"

namespace convssm::worlds {
namespace {

using Distances = std::vector<std::vector<int64_t>>;

// Of all pairs of cells, from the walls alone.
Distances floyd_warshall(const MazeLayout& maze) {
  const auto n = static_cast<size_t>(maze.cells());
  Distances d(n, std::vector<int64_t>(n, 1'000'000));
  for (size_t i = 0; i < n; ++i) {
    d[i][i] = 0;
    const auto cell = static_cast<int64_t>(i);
    if (cell % maze.size() + 1 < maze.size() && maze.open(cell, 0)) d[i][i + 1] = d[i + 1][i] = 1;
    const size_t south = i + static_cast<size_t>(maze.size());
    if (south < n && maze.open(cell, 1)) d[i][south] = d[south][i] = 1;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) d[i][j] = std::min(d[i][j], d[i][k] + d[k][j]);
    }
  }
  return d;
}

TEST(MazeLayout, PathsAreShortest) {
  for (const double loops : {0.0, 0.2}) {
    const MazeLayout maze = random_maze(7, loops, 0, Stream(5));
    const Distances truth = floyd_warshall(maze);
    Stream random(6);
    for (int64_t from = 0; from < maze.cells(); ++from) {
      const std::vector<int64_t> steps = maze.distances(from);
      for (int64_t to = 0; to < maze.cells(); ++to) {
        const int64_t expected = truth[static_cast<size_t>(from)][static_cast<size_t>(to)];
        ASSERT_LT(expected, 49) << "not connected";
        ASSERT_EQ(steps[static_cast<size_t>(to)], expected);
        ASSERT_EQ(maze.distances(from, 5)[static_cast<size_t>(to)], expected <= 5 ? expected : -1);
        const std::vector<int64_t> path = maze.path(from, to, random);
        ASSERT_EQ(static_cast<int64_t>(path.size()), expected + 1);
        ASSERT_EQ(path.front(), from);
        ASSERT_EQ(path.back(), to);
        for (size_t i = 0; i + 1 < path.size(); ++i)
          ASSERT_TRUE(maze.open(path[i], maze.direction(path[i], path[i + 1])));
      }
    }
  }
}

int64_t doors_of(const MazeLayout& maze) {
  int64_t doors = 0;
  for (int64_t cell = 0; cell < maze.cells(); ++cell) {
    for (int d = 0; d < 4; ++d) {
      const int64_t other = maze.neighbour(cell, d);
      EXPECT_TRUE(other >= 0 || !maze.open(cell, d)) << "a hole in the outer wall";
      if (other >= 0) {
        EXPECT_EQ(maze.open(cell, d), maze.open(other, (d + 2) % 4));
        doors += maze.open(cell, d) ? 1 : 0;
      }
    }
  }
  return doors / 2;
}

TEST(MazeLayout, LoopsAreOpenedWalls) {
  const int64_t tree = 48, inner = 2 * 7 * 6;
  EXPECT_EQ(doors_of(random_maze(7, 0, 0, Stream(1))), tree);
  EXPECT_EQ(doors_of(random_maze(7, 0, 2, Stream(1))), tree + 2);
  EXPECT_EQ(doors_of(random_maze(7, 1, 0, Stream(1))), inner);
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 50; ++i) keys.insert(random_maze(7, 0.1, 0, Stream(i)).key());
  EXPECT_EQ(keys.size(), 50u);
}

// The first wall that is opened closes a loop of 6 to 14 cells if there is such a wall, which a large maze always has.
TEST(MazeLayout, MiddlingLoopsAreOpenedFirst) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const MazeLayout tree = random_maze(12, 0, 0, Stream(seed)), maze = random_maze(12, 0, 1, Stream(seed));
    int opened = 0;
    for (int64_t cell = 0; cell < maze.cells(); ++cell) {
      for (const int d : {0, 1}) {
        if (maze.open(cell, d) == tree.open(cell, d)) continue;
        const int64_t loop = tree.distances(cell)[static_cast<size_t>(maze.neighbour(cell, d))] + 1;
        EXPECT_GE(loop, 6);
        EXPECT_LE(loop, 14);
        ++opened;
      }
    }
    EXPECT_EQ(opened, 1);
  }
}

TEST(MazeLayout, AWayBackTakesOtherDoors) {
  const MazeLayout maze = random_maze(7, 0.2, 1, Stream(3));
  const std::vector<int64_t> loop = find_loop(maze, MazeSteps(), 143, Stream(4));
  ASSERT_GE(loop.size(), 5u);
  EXPECT_EQ(loop.front(), loop.back());
  std::set<std::pair<int64_t, int64_t>> doors;
  for (size_t i = 0; i + 1 < loop.size(); ++i) {
    EXPECT_TRUE(maze.open(loop[i], maze.direction(loop[i], loop[i + 1])));
    EXPECT_TRUE(doors.insert(std::minmax(loop[i], loop[i + 1])).second) << "the same door twice";
  }
  EXPECT_TRUE(find_loop(random_maze(7, 0, 0, Stream(3)), MazeSteps(), 1000, Stream(4)).empty()) << "a tree has no loop";
}

TEST(MazeLayout, ATourVisitsAllCellsAndReturns) {
  const MazeLayout maze = random_maze(5, 0.1, 0, Stream(8));
  std::vector<int64_t> all;
  for (int64_t cell = 0; cell < maze.cells(); ++cell) all.push_back(cell);
  const std::vector<int64_t> way = tour(maze, all);
  EXPECT_EQ(way.front(), 0);
  EXPECT_EQ(way.back(), 0);
  EXPECT_EQ(std::set<int64_t>(way.begin(), way.end()).size(), 25u);
  for (size_t i = 0; i + 1 < way.size(); ++i) EXPECT_TRUE(maze.open(way[i], maze.direction(way[i], way[i + 1])));
}

}  // namespace
}  // namespace convssm::worlds
