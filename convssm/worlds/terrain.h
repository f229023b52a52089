// terrain: the Minecraft benchmark's kind of world. A landscape of blocks (hills, water, woods, bright pillars) through which
// a walker goes straight on for a while and turns left or right, so that things leave the view and come back.
//   The landscape repeats after 256 blocks. Columns are solid up to their height; the eye is 1.6 above the ground. A ray of
//   row r sinks by (r + 0.5 - horizon) / f for each block of depth, f the focal length in rays (as in maze.h), horizon 0.42 of
//   all rows. What is deeper than 64 blocks is sky.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/worlds/ground.h"
#include "convssm/worlds/protocol.h"
#include "convssm/worlds/world.h"

namespace convssm::worlds {

struct TerrainOptions : WorldOptions {
  double trees = 1;  // how many, as a factor

  TerrainOptions();
  static TerrainOptions from_json(const nlohmann::json& json);
};

// Forward is half a block, a turn 15 degrees. Water, trunks and steps of more than one block stop the walker.
enum class TerrainAction : int64_t { none, forward, left, right };

// Over the edge of the landscape it goes on at the other side.
inline int64_t wrap_position(int64_t position) { return position & (Ground::side * unit - 1); }

class Terrain : public World {
 public:
  static constexpr double deepest = 64, horizon = 0.42, stride = 0.5;
  static constexpr int64_t patch = 4;  // blocks: what counts as one surface for the sight

  Terrain(const TerrainOptions& options, uint64_t seed, std::string_view split, uint64_t index);

  const View& view() const override { return options_.view; }
  const std::vector<std::string>& actions() const override { return action_names(); }
  int64_t surfaces() const override { return (Ground::side / patch) * (Ground::side / patch); }
  Pose start() const override { return start_; }
  Pose step(const Pose& from, int64_t action) const override;
  std::unique_ptr<Policy> policy() const override;  // the world must outlive it
  void render(const Pose& pose, std::span<uint8_t> rgb, Sight* sight) const override;
  io::Image map(std::span<const Pose> path, int64_t side) const override;

  static const std::vector<std::string>& action_names();
  uint64_t key() const { return key_; }  // all of the landscape follows from it
  const Ground& ground() const { return ground_; }
  double eye(const Pose& pose) const;  // its height, smooth over steps of the ground

 private:
  bool has_room(const Pose& pose) const;
  bool find_start(Stream random);
  bool circle_is_free(const Pose& start, int64_t straight, int64_t turn) const;

  TerrainOptions options_;
  uint64_t key_ = 0;
  Ground ground_;
  Pose start_;
  std::vector<int64_t> first_plan_;  // actions before `second`, of the protocols loop and reasoning
};

std::shared_ptr<const Worlds> make_terrains(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::worlds
