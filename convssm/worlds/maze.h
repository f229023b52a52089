// maze: the DMLab benchmark's kind of world. A random maze with textured walls, floors and ceilings and pictures on the
// walls; a walker goes to random cells by the shortest way. Neighbouring walls share a style, districts differ.
//   Walls are 1 high and the eye is at 0.5. A ray of the frame is dir + right * s, s from -tan(fov/2) to tan(fov/2); at the
//   depth t along dir a surface is darkened by shade(t), walls to the north and south to 0.8 of that. Textures are read
//   at the mip level of the ray's footprint: t / f on walls, t / f * sqrt(2 t) on floor and ceiling, where f is the focal
//   length in rays: a frame of width w and n samples has f = w n / (2 tan(fov / 2)).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/worlds/maze_layout.h"
#include "convssm/worlds/maze_plan.h"
#include "convssm/worlds/protocol.h"
#include "convssm/worlds/texture.h"
#include "convssm/worlds/world.h"

namespace convssm::worlds {

// patterns: bricks, tiles, planks, ... in any colour, darker with the distance. rooms: the walls of a cell have one of four tones, floors
// and ceilings are the same everywhere, so that what is to be remembered of a maze is where its walls are and which tone a cell has.
enum class MazeLook { patterns, rooms };

struct MazeOptions : WorldOptions {
  int64_t size = 7;    // cells a side
  double loops = 0.1;  // share of the inner walls that is taken away, so that there are several ways
  MazeLook look = MazeLook::patterns;
  MazeMoves moves = MazeMoves::eighths;
  double strays = 0;  // share of actions drawn at random, some of them against a wall; of MazeMoves::cells

  static MazeOptions from_json(const nlohmann::json& json);
};

// How far they go: MazeMoves. Both at once follow a circle of half a cell's radius; with MazeMoves::cells there is no such action.
enum class MazeAction : int64_t { none, forward, left, right, forward_left, forward_right };

class Maze : public World {
 public:
  Maze(const MazeOptions& options, uint64_t seed, std::string_view split, uint64_t index);

  const View& view() const override { return options_.view; }
  const std::vector<std::string>& actions() const override { return action_names(options_.moves); }
  int64_t surfaces() const override { return 5 * layout_.cells(); }
  Pose start() const override;
  Pose step(const Pose& from, int64_t action) const override;
  std::unique_ptr<Policy> policy() const override;
  void render(const Pose& pose, std::span<uint8_t> rgb, Sight* sight) const override;
  io::Image map(std::span<const Pose> path, int64_t side) const override;

  static const std::vector<std::string>& action_names(MazeMoves moves);
  const MazeLayout& layout() const { return layout_; }
  const std::vector<int64_t>& region() const { return region_; }  // cells that are walked

  // How things look. A wall is named by a cell and the direction in which it lies from there.
  const Texture& wall(int64_t cell, int direction) const {
    return textures_[walls_[static_cast<size_t>(4 * cell + direction)]];
  }
  const Texture& floor(int64_t cell) const { return textures_[floors_[static_cast<size_t>(cell)]]; }
  const Texture& ceiling(int64_t cell) const { return textures_[ceilings_[static_cast<size_t>(cell)]]; }
  double shade(double depth) const;

  // Numbers of surfaces: walls, then floor and ceiling of a cell together.
  static uint32_t wall_id(int64_t cell, int direction) { return static_cast<uint32_t>(4 * cell + direction); }
  uint32_t ground_id(int64_t cell) const { return static_cast<uint32_t>(4 * layout_.cells() + cell); }

 private:
  int64_t cell_at(const Pose& pose) const { return pose.y / unit * layout_.size() + pose.x / unit; }
  Pose small_step(const Pose& from, MazeAction action) const;
  void paint();
  void paint_rooms();
  void choose_start();

  MazeOptions options_;
  MazeSteps steps_;
  Stream random_;
  MazeLayout layout_;
  std::vector<int64_t> region_;
  int64_t start_cell_ = 0;
  int start_heading_ = 0;
  std::vector<int64_t> first_plan_;  // actions before `second`, of the protocols loop and reasoning
  std::vector<Texture> textures_;
  std::vector<uint8_t> walls_, floors_, ceilings_;  // which texture
};

std::shared_ptr<const Worlds> make_mazes(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::worlds
