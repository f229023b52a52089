// A world that renders itself: one place to be in, a pure function of (seed, split, index), with a camera, actions and a
// walker that knows where to go. No tensors here; data/ makes clips of it.
//   auto worlds = make_worlds({{"name", "maze"}}, seed);   auto world = worlds->at("test", 7);
//   Walk walk(world);   walk.frame(pixels);   walk.step(1);   walk.frame(pixels);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/io/png.h"
#include "convssm/worlds/pose.h"

namespace convssm::worlds {

// The camera.
struct View {
  int64_t width = 64, height = 64;  // pixels
  double fov = 80;                  // degrees from the left edge to the right one; pixels are square
  int64_t samples = 2;              // samples x samples rays for a pixel
  int64_t bytes() const { return 3 * width * height; }
};

// What of the world a frame shows: surfaces by number, in ascending order, each with the rays that end on it.
struct Surface {
  uint32_t id = 0, rays = 0;
};
using Sight = std::vector<Surface>;

// Chooses the next action of a walker; has a memory of its own.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual int64_t next() = 0;
};

class World {
 public:
  virtual ~World() = default;

  virtual const View& view() const = 0;
  virtual const std::vector<std::string>& actions() const = 0;  // names; action 0 is none: nothing moves
  virtual int64_t surfaces() const = 0;                         // ids of surfaces are below this number

  virtual Pose start() const = 0;
  virtual Pose step(const Pose& from, int64_t action) const = 0;  // where it leads; something solid stops it
  virtual std::unique_ptr<Policy> policy() const = 0;             // from the start on, by the protocol of the world

  // What is seen from there, RGB [height,width,3]. `sight`, if given, is what surfaces those are. From several threads.
  virtual void render(const Pose& pose, std::span<uint8_t> rgb, Sight* sight = nullptr) const = 0;

  // From above, `side` pixels square, with the path so far; the walker is at its end.
  virtual io::Image map(std::span<const Pose> path, int64_t side) const = 0;
};

// Steps through a world: by the caller's actions, or by those of the world's own policy.
class Walk {
 public:
  explicit Walk(std::shared_ptr<const World> world);

  const World& world() const { return *world_; }
  const Pose& pose() const { return pose_; }
  void step(int64_t action);  // Error(usage) unless there is such an action
  int64_t step();             // by the policy; which action it was
  void frame(std::span<uint8_t> rgb, Sight* sight = nullptr) const;

 private:
  std::shared_ptr<const World> world_;
  Pose pose_;
  std::unique_ptr<Policy> policy_;
};

// Worlds without end, by split and number. Those of one split are in no other.
class Worlds {
 public:
  virtual ~Worlds() = default;
  virtual std::shared_ptr<const World> at(std::string_view split, uint64_t index) const = 0;
  virtual const View& view() const = 0;
  virtual const std::vector<std::string>& actions() const = 0;
  virtual std::vector<std::string> summary() const = 0;  // lines for people
};

struct WorldInfo {
  std::string name, summary;
  std::function<std::shared_ptr<const Worlds>(const nlohmann::json& options, uint64_t seed)> make;  // without `name`
};

const std::vector<WorldInfo>& all_worlds();

// Adds a world of the caller's own. Before the first dataset is made: datasets take the worlds there are then.
void register_world(WorldInfo info);

// options: {"name": "maze", ...}. An unknown name or option is an error that names the nearest known one.
std::shared_ptr<const Worlds> make_worlds(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::worlds
