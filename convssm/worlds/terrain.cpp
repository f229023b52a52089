// The landscape as a world: where a walker starts, and where it can go. A circle of 24 straight parts with a turn between
// them closes exactly, since opposite steps cancel: that is the way of the protocol loop, and the way round the region of
// the protocol reasoning.
#include "convssm/worlds/terrain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"

namespace convssm::worlds {
namespace {

constexpr double kMargin = 0.4;
constexpr int64_t kForward = static_cast<int64_t>(TerrainAction::forward);
constexpr size_t kRoom = 600;  // blocks that can be reached from a start

uint64_t choose_key(uint64_t seed, std::string_view split, uint64_t index, uint64_t world) {
  const Stream random = Stream(seed, fmt::format("terrain: {}", split), index).split("world", world);
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t key = random.split("key", attempt).next();
    if (in_split(key, split)) return key;
  }
}

int64_t block(int64_t position) { return position >> 16; }  // rounds down, of negative numbers too

// Whether enough blocks can be reached from here, by a breadth-first search.
bool has_way_out(const Ground& ground, int64_t x, int64_t y) {
  std::vector<std::pair<int64_t, int64_t>> queue = {{x, y}};
  std::vector<bool> known(static_cast<size_t>(Ground::side * Ground::side));
  const auto place = [](int64_t i, int64_t j) {
    return static_cast<size_t>((j & (Ground::side - 1)) * Ground::side + (i & (Ground::side - 1)));
  };
  known[place(x, y)] = true;
  for (size_t i = 0; i < queue.size() && queue.size() < kRoom; ++i) {
    const auto [from_x, from_y] = queue[i];
    for (const auto& [a, b] : {std::pair{1, 0}, {0, 1}, {-1, 0}, {0, -1}}) {
      const int64_t to_x = from_x + a, to_y = from_y + b;
      if (known[place(to_x, to_y)] || !ground.walkable(to_x, to_y)) continue;
      if (std::abs(ground.at(to_x, to_y).height - ground.at(from_x, from_y).height) > 1) continue;
      known[place(to_x, to_y)] = true;
      queue.emplace_back(to_x, to_y);
    }
  }
  return queue.size() >= kRoom;
}

// A full turn on the spot; a circle.
void append_turn(std::vector<int64_t>& plan, int64_t turn) { plan.insert(plan.end(), headings, turn); }
void append_circle(std::vector<int64_t>& plan, int64_t straight, int64_t turn) {
  for (int i = 0; i < headings; ++i) {
    plan.insert(plan.end(), static_cast<size_t>(straight), kForward);
    plan.push_back(turn);
  }
}

class Terrains : public Worlds {
 public:
  Terrains(const TerrainOptions& options, uint64_t seed) : options_(options), seed_(seed) {}
  std::shared_ptr<const World> at(std::string_view split, uint64_t index) const override {
    return std::make_shared<Terrain>(options_, seed_, split, index);
  }
  const View& view() const override { return options_.view; }
  const std::vector<std::string>& actions() const override { return Terrain::action_names(); }
  std::vector<std::string> summary() const override {
    return {fmt::format("landscapes of {} x {} blocks, seen at {} x {} pixels over {} degrees", Ground::side,
                        Ground::side, options_.view.width, options_.view.height, options_.view.fov),
            options_.protocol == Protocol::walk ? std::string("a walker goes straight on for a while and turns")
                                                : fmt::format("protocol {}: the second part starts at frame {}",
                                                              name(options_.protocol), options_.second)};
  }

 private:
  TerrainOptions options_;
  uint64_t seed_;
};

// Steps between the turns of a circle that fits before `second`, with two full turns on the spot or without.
int64_t straight_steps(const TerrainOptions& o) {
  const int64_t turns = o.protocol == Protocol::reasoning ? 2 : 0;
  return std::min<int64_t>((o.second - 1) / headings - turns - 1, o.protocol == Protocol::reasoning ? 3 : 8);
}

}  // namespace

TerrainOptions::TerrainOptions() { view = {.width = 128, .height = 128, .fov = 75, .samples = 2}; }

TerrainOptions TerrainOptions::from_json(const nlohmann::json& json) {
  TerrainOptions o;
  OptionReader read("terrain", json);
  o.read(read);
  read("trees", o.trees);
  read.finish();
  o.check("terrain");
  const auto require = [](bool good, const char* text, auto found) {
    if (!good) fail(ErrorKind::usage, "[terrain] {}, got {}", text, found);
  };
  require(o.trees >= 0 && o.trees <= 10, "trees must be 0 to 10", o.trees);
  const bool planned = o.protocol == Protocol::loop || o.protocol == Protocol::reasoning;
  require(!planned || straight_steps(o) >= 1,
          "`second` must be 49 frames or more for the protocol loop, 97 for reasoning", o.second);
  return o;
}

const std::vector<std::string>& Terrain::action_names() {
  static const std::vector<std::string> names = {"none", "forward", "turn left", "turn right"};
  return names;
}

Terrain::Terrain(const TerrainOptions& options, uint64_t seed, std::string_view split, uint64_t index)
    : options_(options), key_(choose_key(seed, split, index, 0)), ground_(options.trees, Stream(key_, "ground")) {
  for (uint64_t world = 1; !find_start(Stream(key_, "start")); ++world) {  // all water, or no room for a circle
    key_ = choose_key(seed, split, index, world);
    ground_ = Ground(options.trees, Stream(key_, "ground"));
  }
}

bool Terrain::find_start(Stream random) {
  const bool explored = options_.protocol == Protocol::reasoning,
             planned = explored || options_.protocol == Protocol::loop;
  for (int attempt = 0; attempt < 300; ++attempt) {
    const auto x = static_cast<int64_t>(random.below(Ground::side)),
               y = static_cast<int64_t>(random.below(Ground::side));
    start_ = {x * unit + unit / 2, y * unit + unit / 2, static_cast<int>(random.below(headings))};
    const int64_t turn = random.uniform() < 0.5 ? 2 : 3;
    if (!ground_.walkable(x, y)) continue;
    if (!planned && has_way_out(ground_, x, y)) return true;
    const int64_t straight = std::max<int64_t>(1, straight_steps(options_) - attempt / 100);
    if (!planned || !circle_is_free(start_, straight, turn)) continue;
    if (explored) append_turn(first_plan_, turn);
    append_circle(first_plan_, straight, turn);
    if (explored) append_turn(first_plan_, turn);
    if (explored) first_plan_.resize(static_cast<size_t>(options_.second - 1), 0);
    return true;
  }
  return false;
}

bool Terrain::circle_is_free(const Pose& start, int64_t straight, int64_t turn) const {
  std::vector<int64_t> lap;
  append_circle(lap, straight, turn);
  Pose pose = start;
  for (const int64_t action : lap) {
    const Pose next = step(pose, action);
    if (next == pose) return false;
    pose = next;
  }
  return pose == start;
}

Pose Terrain::step(const Pose& from, int64_t action) const {
  Pose to = from;
  if (action == 2 || action == 3) to.heading = wrap_heading(from.heading + (action == 2 ? -1 : 1));
  if (action != kForward) return to;
  const Offset move = ahead(from.heading, stride);
  to.x = wrap_position(from.x + move.x);
  to.y = wrap_position(from.y + move.y);
  if (!has_room(to)) return from;
  const int rise = ground_.at(block(to.x), block(to.y)).height - ground_.at(block(from.x), block(from.y)).height;
  return std::abs(rise) > 1 ? from : to;
}

// Nothing that cannot be walked on, and no high step, is near.
bool Terrain::has_room(const Pose& pose) const {
  const int here = ground_.at(block(pose.x), block(pose.y)).height;
  const auto margin = static_cast<int64_t>(kMargin * static_cast<double>(unit));
  for (const int64_t a : {-margin, margin}) {
    for (const int64_t b : {-margin, margin}) {
      const int64_t x = block(pose.x + a), y = block(pose.y + b);
      if (!ground_.walkable(x, y) || std::abs(ground_.at(x, y).height - here) > 1) return false;
    }
  }
  return true;
}

// Between the heights of the four nearest columns, of which none counts as more than a step away from the own one.
double Terrain::eye(const Pose& pose) const {
  const int here = ground_.at(block(pose.x), block(pose.y)).height;
  const int64_t x = pose.x - unit / 2, y = pose.y - unit / 2;
  const double a = cells(x & (unit - 1)), b = cells(y & (unit - 1));
  const auto height = [&](int64_t i, int64_t j) {
    return static_cast<double>(std::clamp<int>(ground_.at(block(x) + i, block(y) + j).height, here - 1, here + 1));
  };
  return 1.6 + (1 - b) * ((1 - a) * height(0, 0) + a * height(1, 0)) + b * ((1 - a) * height(0, 1) + a * height(1, 1));
}

std::shared_ptr<const Worlds> make_terrains(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<Terrains>(TerrainOptions::from_json(options), seed);
}

}  // namespace convssm::worlds
