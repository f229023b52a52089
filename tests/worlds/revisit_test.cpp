// Revisits against their definition, written out over all pairs of frames.
#include "convssm/worlds/revisit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convssm/worlds/record.h"

namespace convssm::worlds {
namespace {

double overlap_of(const Sight& now, const Sight& before) {
  double rays = 0, all_before = 0, shared = 0;
  for (const Surface& b : before) all_before += b.rays;
  for (const Surface& s : now) {
    rays += s.rays;
    for (const Surface& b : before) shared += b.id == s.id && 256.0 * b.rays >= all_before ? s.rays : 0;
  }
  return rays > 0 ? shared / rays : -1;
}

std::vector<int64_t> by_definition(const std::vector<Sight>& sights, const RevisitOptions& o) {
  std::vector<int64_t> result;
  for (size_t t = 0; t < sights.size(); ++t) {
    int64_t last = -1;
    for (size_t s = 0; s < t; ++s) {
      if (static_cast<int64_t>(t - s) < o.gap || overlap_of(sights[t], sights[s]) < o.overlap) continue;
      bool away = false;
      for (size_t u = s + 1; u < t; ++u) {
        const double shared = overlap_of(sights[t], sights[u]);
        away = away || (shared >= 0 && shared < o.overlap / 2);
      }
      if (away) last = static_cast<int64_t>(s);
    }
    result.push_back(last);
  }
  return result;
}

TEST(Revisit, FollowsItsDefinition) {
  for (const char* name : {"maze", "terrain"}) {
    const auto world = make_worlds({{"name", name}, {"image_size", 16}}, 4)->at("valid", 1);
    const Recorded walk = record(world, 0, 150);
    std::vector<Sight> sights(150);
    std::vector<uint8_t> frame(static_cast<size_t>(world->view().bytes()));
    for (size_t t = 0; t < 150; ++t) world->render(walk.poses[t], frame, &sights[t]);
    EXPECT_EQ(walk.revisit, by_definition(sights, {})) << name;
    const auto seen = std::ranges::count_if(walk.revisit, [](int64_t s) { return s >= 0; });
    EXPECT_GT(seen, 5) << name;
    EXPECT_LT(seen, 145) << name;
    RevisitFinder strict(world->surfaces(), {.overlap = 0.95, .gap = 40});
    std::vector<int64_t> found;
    for (const Sight& sight : sights) found.push_back(strict.add(sight));
    EXPECT_EQ(found, by_definition(sights, {.overlap = 0.95, .gap = 40})) << name;
  }
}

TEST(Revisit, APlaceMustHaveLeftTheView) {
  const Sight here = {{1, 60}, {2, 40}}, elsewhere = {{7, 100}}, between = {{1, 50}, {7, 50}};
  RevisitFinder finder(100, {.overlap = 0.7, .gap = 1});
  EXPECT_EQ(finder.add(here), -1);
  EXPECT_EQ(finder.add(here), -1) << "it never left";
  EXPECT_EQ(finder.add(between), -1) << "half of it was there";
  EXPECT_EQ(finder.add(here), -1) << "some of it stayed";
  EXPECT_EQ(finder.add(elsewhere), 2) << "it was there, and then it was not";
  EXPECT_EQ(finder.add(here), 3);
  EXPECT_EQ(finder.add({}), -1) << "sky alone";
}

}  // namespace
}  // namespace convssm::worlds
