// The walkers of the landscape: one that strolls, in the protocols walk, retrieval and reasoning, and one that goes round.
#include <algorithm>
#include <cmath>
#include <utility>

#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

constexpr int64_t kForward = static_cast<int64_t>(TerrainAction::forward);

double distance(const Pose& a, const Pose& b) {
  constexpr int64_t whole = Ground::side * unit;
  const auto apart = [](int64_t d) { return cells(std::min(wrap_position(d), whole - wrap_position(d))); };
  return std::hypot(apart(a.x - b.x), apart(a.y - b.y));
}

// Straight on for a random while, then a random turn. Within `reach` of a centre, if it is positive.
class Stroller : public PlannedPolicy {
 public:
  Stroller(const Terrain& world, std::vector<int64_t> first, Pose centre, double reach, Stream random)
      : world_(world), pose_(world.start()), first_(std::move(first)), centre_(centre), reach_(reach), random_(random) {
    for (const int64_t action : first_) pose_ = world_.step(pose_, action);
  }

 protected:
  std::vector<int64_t> more() override {
    if (!first_.empty()) return std::exchange(first_, {});
    std::vector<int64_t> plan;
    const auto steps = 4 + static_cast<int64_t>(random_.below(27));
    for (int64_t i = 0; i < steps && add_step(plan); ++i) {
    }
    const int64_t turn = random_.uniform() < 0.5 ? 2 : 3;
    const uint64_t turns = random_.uniform() < 0.15 ? 12 : 1 + random_.below(7);
    for (uint64_t i = 0; i < turns; ++i) add(plan, turn);
    for (int i = 0; i < headings && !can_step(); ++i) add(plan, turn);
    plan.insert(plan.end(), random_.below(3), 0);
    return plan;
  }

 private:
  void add(std::vector<int64_t>& plan, int64_t action) {
    plan.push_back(action);
    pose_ = world_.step(pose_, action);
  }
  bool can_step() const {
    const Pose next = world_.step(pose_, kForward);
    return next != pose_ && (reach_ <= 0 || distance(next, centre_) < std::max(reach_, distance(pose_, centre_)));
  }
  bool add_step(std::vector<int64_t>& plan) {
    if (!can_step()) return false;
    add(plan, kForward);
    return true;
  }

  const Terrain& world_;
  Pose pose_;
  std::vector<int64_t> first_;
  Pose centre_;
  double reach_;
  Stream random_;
};

class Circles : public PlannedPolicy {
 public:
  explicit Circles(std::vector<int64_t> lap) : lap_(std::move(lap)) {}

 protected:
  std::vector<int64_t> more() override { return lap_; }

 private:
  std::vector<int64_t> lap_;
};

}  // namespace

std::unique_ptr<Policy> Terrain::policy() const {
  const Stream random(key_, "walk");
  if (options_.protocol == Protocol::loop) return std::make_unique<Circles>(first_plan_);
  // The middle of the circle is as far to the side as its radius: half a step for each turn, all around.
  Pose centre = start_;
  double reach = 0;
  if (options_.protocol == Protocol::reasoning) {
    int64_t straight = 0;
    while (first_plan_[static_cast<size_t>(headings + straight)] == kForward) ++straight;
    const int side = first_plan_[0] == 2 ? -headings / 4 : headings / 4;
    reach = static_cast<double>(straight) * Terrain::stride / (2 * sine(1) / (1 + cosine(1)));
    const Offset in = ahead(start_.heading + side, reach);
    centre = {wrap_position(start_.x + in.x), wrap_position(start_.y + in.y), 0};
    reach *= 1.1;
  }
  auto walk = std::make_unique<Stroller>(*this, first_plan_, centre, reach, random);
  if (options_.protocol != Protocol::retrieval) return walk;
  return out_and_back(std::move(walk), options_.second, 2, headings / 2, {0, 1, 3, 2});
}

}  // namespace convssm::worlds
