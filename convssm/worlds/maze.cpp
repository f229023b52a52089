// A maze and its walker. The layout is drawn again until it falls into the split; all else is drawn once.
#include "convssm/worlds/maze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/worlds/maze_plan.h"

namespace convssm::worlds {
namespace {

constexpr int64_t kCell = 8, kQuarterTurn = 6;  // small steps, of which actions are made
constexpr double kStep = 1.0 / kCell, kRadius = 0.5, kMargin = 0.2;
constexpr uint64_t kMostTries = 2000;

// Closes the walls round the first cells that can all be explored by `most` actions; which those are.
std::vector<int64_t> close_region(MazeLayout& maze, const MazeSteps& steps, int64_t most, Stream random) {
  const auto start = static_cast<int64_t>(random.below(static_cast<uint64_t>(maze.cells())));
  const std::vector<int64_t> apart = maze.distances(start);
  std::vector<int64_t> near(static_cast<size_t>(maze.cells()));
  std::iota(near.begin(), near.end(), 0);
  std::ranges::stable_sort(near, {}, [&](int64_t cell) { return apart[static_cast<size_t>(cell)]; });
  std::vector<int64_t> region = {start};
  for (size_t count = 2; count <= near.size(); ++count) {
    MazeSpot spot{start, 0};
    if (static_cast<int64_t>(follow(maze, steps, tour(maze, std::span(near).first(count)), spot).size()) > most) break;
    region.push_back(near[count - 1]);
  }
  const auto inside = [&](int64_t cell) { return std::ranges::find(region, cell) != region.end(); };
  for (int64_t cell = 0; cell < maze.cells(); ++cell) {
    for (int d = 0; d < 4; ++d) {
      if (maze.open(cell, d) && !(inside(cell) && inside(maze.neighbour(cell, d)))) maze.set_open(cell, d, false);
    }
  }
  return region;
}

// To random cells of the region by the shortest way, after the actions of `first`. A share of `strays` actions is drawn from all but
// none; from where it leads, the way is a new one.
class Wanderer : public PlannedPolicy {
 public:
  Wanderer(const MazeLayout& maze, std::vector<int64_t> region, MazeSpot spot, std::vector<int64_t> first,
           const MazeSteps& steps, double strays, Stream random)
      : maze_(maze),
        region_(std::move(region)),
        spot_(spot),
        first_(std::move(first)),
        steps_(steps),
        strays_(strays),
        random_(random) {}

 protected:
  std::vector<int64_t> more() override {
    if (!first_.empty()) return std::exchange(first_, {});
    const int64_t goal = region_[random_.below(region_.size())];
    std::vector<int64_t> plan(goal == spot_.cell ? 1 : random_.below(3), 0);  // looks for a while
    if (strays_ > 0) {
      stray_to(goal, plan);
      return plan;
    }
    const std::vector<int64_t> walk = follow(maze_, steps_, maze_.path(spot_.cell, goal, random_), spot_);
    plan.insert(plan.end(), walk.begin(), walk.end());
    return plan;
  }

 private:
  void stray_to(int64_t goal, std::vector<int64_t>& plan) {
    while (spot_.cell != goal) {
      const std::vector<int64_t> way = maze_.path(spot_.cell, goal, random_);
      MazeSpot next = spot_;
      int64_t action = follow(maze_, steps_, std::span(way).first(2), next).front();
      if (random_.uniform() < strays_) action = 1 + static_cast<int64_t>(random_.below(3));
      plan.push_back(action);
      take(static_cast<MazeAction>(action));
    }
  }

  void take(MazeAction action) {
    if (action == MazeAction::left) spot_.direction = (spot_.direction + 3) % 4;
    if (action == MazeAction::right) spot_.direction = (spot_.direction + 1) % 4;
    if (action == MazeAction::forward && maze_.open(spot_.cell, spot_.direction)) {
      spot_.cell = maze_.neighbour(spot_.cell, spot_.direction);
    }
  }

  const MazeLayout maze_;
  std::vector<int64_t> region_;
  MazeSpot spot_;
  std::vector<int64_t> first_;
  MazeSteps steps_;
  double strays_;
  Stream random_;
};

class Rounds : public PlannedPolicy {
 public:
  Rounds(std::vector<int64_t> lap, Stream random) : lap_(std::move(lap)), random_(random) {}

 protected:
  std::vector<int64_t> more() override {
    std::vector<int64_t> plan = lap_;
    plan.insert(plan.end(), random_.below(3), 0);
    return plan;
  }

 private:
  std::vector<int64_t> lap_;
  Stream random_;
};

class Mazes : public Worlds {
 public:
  Mazes(const MazeOptions& options, uint64_t seed) : options_(options), seed_(seed) {}
  std::shared_ptr<const World> at(std::string_view split, uint64_t index) const override {
    return std::make_shared<Maze>(options_, seed_, split, index);
  }
  const View& view() const override { return options_.view; }
  const std::vector<std::string>& actions() const override { return Maze::action_names(options_.moves); }
  std::vector<std::string> summary() const override {
    return {fmt::format("mazes of {} x {} cells, seen at {} x {} pixels over {} degrees", options_.size, options_.size,
                        options_.view.width, options_.view.height, options_.view.fov),
            options_.protocol == Protocol::walk ? fmt::format("a walker goes to random cells by the shortest way{}",
                                                              options_.strays > 0 ? ", and strays from it" : "")
                                                : fmt::format("protocol {}: the second part starts at frame {}",
                                                              name(options_.protocol), options_.second)};
  }

 private:
  MazeOptions options_;
  uint64_t seed_;
};

MazeMoves parse_moves(const std::string& text) {
  if (text == "eighths") return MazeMoves::eighths;
  if (text == "quarters") return MazeMoves::quarters;
  if (text == "cells") return MazeMoves::cells;
  fail(ErrorKind::usage, "[maze] moves must be eighths, quarters or cells, got '{}'", text);
}

MazeLook parse_look(const std::string& text) {
  if (text == "patterns") return MazeLook::patterns;
  if (text == "rooms") return MazeLook::rooms;
  fail(ErrorKind::usage, "[maze] look must be patterns or rooms, got '{}'", text);
}

}  // namespace

MazeOptions MazeOptions::from_json(const nlohmann::json& json) {
  MazeOptions o;
  OptionReader read("maze", json);
  o.read(read);
  read("size", o.size);
  read("loops", o.loops);
  read("moves", [&](const std::string& text) { o.moves = parse_moves(text); });
  read("look", [&](const std::string& text) { o.look = parse_look(text); });
  read("strays", o.strays);
  read.finish();
  o.check("maze");
  const auto require = [](bool good, const char* text, auto found) {
    if (!good) fail(ErrorKind::usage, "[maze] {}, got {}", text, found);
  };
  require(o.size >= 3 && o.size <= 64, "size must be 3 to 64 cells", o.size);
  require(o.loops >= 0 && o.loops <= 1, "loops must be 0 to 1", o.loops);
  require(o.strays >= 0 && o.strays <= 0.9, "strays must be 0 to 0.9", o.strays);
  const bool wanders = o.protocol == Protocol::walk || o.protocol == Protocol::reasoning;
  require(o.strays == 0 || (o.moves == MazeMoves::cells && wanders),
          "strays is of moves: cells and of the protocols walk and reasoning; otherwise it must be 0", o.strays);
  const bool planned = o.protocol == Protocol::loop || o.protocol == Protocol::reasoning;
  const int64_t least = o.moves == MazeMoves::eighths ? 64 : o.moves == MazeMoves::quarters ? 33 : 16;
  if (planned && o.second < least) {
    fail(ErrorKind::usage,
         "[maze] the protocols loop and reasoning need {} frames or more before `second` with these moves, got {}",
         least, o.second);
  }
  return o;
}

const std::vector<std::string>& Maze::action_names(MazeMoves moves) {
  static const std::vector<std::string> all = {"none",       "forward",          "turn left",
                                               "turn right", "forward and left", "forward and right"};
  static const std::vector<std::string> without_arcs(all.begin(), all.begin() + 4);
  return moves == MazeMoves::cells ? without_arcs : all;
}

Maze::Maze(const MazeOptions& options, uint64_t seed, std::string_view split, uint64_t index)
    : options_(options),
      steps_(options.moves),
      random_(seed, fmt::format("maze: {}", split), index),
      layout_(options.size) {
  const bool round = options_.protocol == Protocol::loop, explored = options_.protocol == Protocol::reasoning;
  for (uint64_t attempt = 0;; ++attempt) {
    if (attempt == kMostTries) {
      fail(ErrorKind::usage, "[maze] of {} mazes of size {} with loops {} none {} the split {}; raise size{}", attempt,
           options_.size, options_.loops,
           round ? fmt::format("had a loop of {} frames or fewer and was of", options_.second - 1) : "was of", split,
           round ? " or `second`" : ", or set loops to less");
    }
    const Stream random = random_.split("layout", attempt);
    layout_ = random_maze(options_.size, options_.loops, round ? 1 : 0, random.split("walls"));
    region_.resize(static_cast<size_t>(layout_.cells()));
    std::iota(region_.begin(), region_.end(), 0);
    if (explored)
      region_ = close_region(layout_, steps_, options_.second - 1 - 2 * steps_.quarter_turn, random.split("region"));
    if (!in_split(layout_.key(), split)) continue;
    if (!round) break;
    region_ = find_loop(layout_, steps_, options_.second - 1, random.split("loop"));
    if (!region_.empty()) break;
  }
  choose_start();
  paint();
}

void Maze::choose_start() {
  Stream random = random_.split("start");
  MazeSpot spot{region_[0], static_cast<int>(random.below(4))};
  if (options_.protocol == Protocol::loop) spot.direction = layout_.direction(region_[region_.size() - 2], region_[0]);
  if (options_.protocol == Protocol::walk || options_.protocol == Protocol::retrieval) {
    spot.cell = region_[random.below(region_.size())];
  }
  if (options_.protocol == Protocol::walk || options_.protocol == Protocol::retrieval) {
    while (!layout_.open(spot.cell, spot.direction)) spot.direction = (spot.direction + 1) % 4;
  }
  start_cell_ = spot.cell;
  start_heading_ = spot.direction * headings / 4;
  if (options_.protocol == Protocol::loop) first_plan_ = follow(layout_, steps_, region_, spot);
  if (options_.protocol == Protocol::reasoning) {
    first_plan_ = follow(layout_, steps_, tour(layout_, region_), spot);
    first_plan_.resize(static_cast<size_t>(options_.second - 1), 0);
  }
}

Pose Maze::start() const {
  const auto centre = [](int64_t cell) { return cell * unit + unit / 2; };
  return {centre(start_cell_ % layout_.size()), centre(start_cell_ / layout_.size()), start_heading_};
}

Pose Maze::step(const Pose& from, int64_t action) const {
  const bool straight = static_cast<MazeAction>(action) == MazeAction::forward;
  const int64_t small = straight ? kCell / steps_.cell : kQuarterTurn / steps_.quarter_turn;
  Pose to = from;
  if (straight && options_.moves == MazeMoves::cells && !layout_.open(cell_at(from), from.heading * 4 / headings))
    return to;
  for (int64_t i = 0; i < small; ++i) to = small_step(to, static_cast<MazeAction>(action));
  return to;
}

Pose Maze::small_step(const Pose& from, MazeAction action) const {
  Offset move;
  int turn = 0;
  switch (action) {
    case MazeAction::none:
      return from;
    case MazeAction::forward:
      move = ahead(from.heading, kStep);
      break;
    case MazeAction::left:
    case MazeAction::right:
      turn = action == MazeAction::left ? -1 : 1;
      break;
    case MazeAction::forward_left:
    case MazeAction::forward_right:
      turn = action == MazeAction::forward_left ? -1 : 1;
      move = along_arc(from.heading, turn, kRadius);
      break;
  }
  // One coordinate after the other: a wall of the cell stops it at a margin, and no cell is entered beside one.
  const auto margin = static_cast<int64_t>(kMargin * static_cast<double>(unit));
  Pose to = from;
  const auto stopped = [&](int64_t place, int low, int high) {
    const int64_t cell = cell_at(to), along = low == 2 ? to.x / unit : to.y / unit;
    if (!layout_.open(cell, low)) place = std::max(place, along * unit + margin);
    if (!layout_.open(cell, high)) place = std::min(place, (along + 1) * unit - margin);
    return place;
  };
  const auto has_room = [&] {
    const int64_t cell = cell_at(to), x = to.x % unit, y = to.y % unit;
    return (layout_.open(cell, 0) || x <= unit - margin) && (layout_.open(cell, 1) || y <= unit - margin) &&
           (layout_.open(cell, 2) || x >= margin) && (layout_.open(cell, 3) || y >= margin);
  };
  to.x = stopped(from.x + move.x, 2, 0);
  if (!has_room()) to.x = from.x;
  to.y = stopped(from.y + move.y, 3, 1);
  if (!has_room()) to.y = from.y;
  to.heading = wrap_heading(from.heading + turn);
  return to;
}

std::unique_ptr<Policy> Maze::policy() const {
  const Stream random = random_.split("walk");
  MazeSpot spot{start_cell_, start_heading_ / (headings / 4)};
  if (options_.protocol == Protocol::loop) return std::make_unique<Rounds>(first_plan_, random);
  if (options_.protocol == Protocol::reasoning) follow(layout_, steps_, tour(layout_, region_), spot);
  auto walk = std::make_unique<Wanderer>(layout_, region_, spot, first_plan_, steps_, options_.strays, random);
  if (options_.protocol != Protocol::retrieval) return walk;
  return out_and_back(std::move(walk), options_.second, static_cast<int64_t>(MazeAction::left), 2 * steps_.quarter_turn,
                      {0, 1, 3, 2, 5, 4});
}

std::shared_ptr<const Worlds> make_mazes(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<Mazes>(MazeOptions::from_json(options), seed);
}

}  // namespace convssm::worlds
