// The worlds by name, and walking through one.
#include "convssm/worlds/world.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/registry.h"
#include "convssm/worlds/maze.h"
#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

Registry<WorldInfo>& registry() {
  static Registry<WorldInfo> all("world",
                                 {{"maze", "mazes with textured walls, seen by a walker", make_mazes},
                                  {"terrain", "hills, water and trees of blocks, seen by a walker", make_terrains}});
  return all;
}

}  // namespace

Walk::Walk(std::shared_ptr<const World> world) : world_(std::move(world)), pose_(world_->start()) {}

void Walk::step(int64_t action) {
  const auto count = static_cast<int64_t>(world_->actions().size());
  if (action < 0 || action >= count) {
    fail(ErrorKind::usage, "[world] an action is 0 to {} ({}), got {}", count - 1, fmt::join(world_->actions(), ", "),
         action);
  }
  pose_ = world_->step(pose_, action);
}

int64_t Walk::step() {
  if (!policy_) policy_ = world_->policy();
  const int64_t action = policy_->next();
  step(action);
  return action;
}

void Walk::frame(std::span<uint8_t> rgb, Sight* sight) const { world_->render(pose_, rgb, sight); }

const std::vector<WorldInfo>& all_worlds() { return registry().all(); }

void register_world(WorldInfo info) { registry().add(std::move(info)); }

std::shared_ptr<const Worlds> make_worlds(const nlohmann::json& options, uint64_t seed) {
  if (!options.is_object() || !options.contains("name") || !options["name"].is_string()) {
    fail(ErrorKind::usage, "[world] expected the name of a world ({}) in the option 'name', got {}",
         fmt::join(registry().names(), ", "), options.dump());
  }
  nlohmann::json rest = options;
  rest.erase("name");
  return registry().find(options["name"]).make(rest, seed);
}

}  // namespace convssm::worlds
